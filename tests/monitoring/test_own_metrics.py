"""What the workers counted stands at /metrics of the web."""

from django.test import Client

from monitoring import hot


def test_it_shows_what_workers_counted(client: Client) -> None:
    hot.store().count("collections_ok", 5)
    hot.store().count("collections_failed:check-network", 2)
    hot.store().count("samples_dropped", 3)
    text = client.get("/metrics").content.decode()
    assert 'numaweb_collections_total{result="ok"} 5.0' in text
    assert 'numaweb_collections_total{result="check-network"} 2.0' in text
    assert "numaweb_history_samples_dropped_total 3.0" in text
    assert "# TYPE numaweb_live_sockets gauge" in text
