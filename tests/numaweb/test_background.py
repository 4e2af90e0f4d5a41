"""Background work: the settings with which no task is lost or done twice."""

import pytest
from celery import current_app
from pytest_django.fixtures import Settings

from monitoring import schedule
from numaweb import celery
from policies import schedule as changes


def test_it_gives_back_what_a_killed_worker_had() -> None:
    conf = celery.app.conf
    assert conf.task_acks_late
    assert conf.task_reject_on_worker_lost
    assert conf.worker_prefetch_multiplier == 1


def test_it_ends_a_task_before_the_broker_gives_it_to_another() -> None:
    conf = celery.app.conf
    assert conf.task_soft_time_limit < conf.task_time_limit < celery.REDIS_TRANSPORT["visibility_timeout"]


def test_it_hears_of_a_lost_task_within_seconds() -> None:
    assert (
        celery.REDIS_TRANSPORT["unacked_restore_interval"]
        * celery.REDIS_TRANSPORT["unacked_restore_throttle"]
        <= 2
    )


def test_it_accepts_nothing_but_json() -> None:
    assert celery.app.conf.accept_content == ["json"]
    assert celery.app.conf.task_serializer == "json"


def test_it_is_the_app_that_tasks_find() -> None:
    assert current_app.main == "numaweb"


def test_it_is_never_eager() -> None:
    assert not celery.app.conf.task_always_eager


def test_every_line_of_the_schedule_is_a_task_for_a_known_queue() -> None:
    celery.app.loader.import_default_modules()
    queues = {queue.name for queue in celery.app.conf.task_queues}
    for entry in celery.app.conf.beat_schedule.values():
        assert entry["task"] in celery.app.tasks
        assert entry["options"]["queue"] in queues
    assert {*celery.app.conf.beat_schedule} == {
        entry.name for entry in (*schedule.SCHEDULE, *changes.SCHEDULE)
    }


def test_every_line_expires_before_the_next_comes() -> None:
    for entry in celery.app.conf.beat_schedule.values():
        options = entry["options"]
        assert 1 <= options.get("expires", options.get("expire_seconds")) < entry["schedule"]


@pytest.mark.parametrize(("distributed", "key"), [(False, "expires"), (True, "expire_seconds")])
def test_it_tells_each_scheduler_in_its_own_words(settings: Settings, distributed: bool, key: str) -> None:
    settings.NUMAWEB_DISTRIBUTED = distributed
    assert celery.beat_entry("task", 60, "default")["options"] == {"queue": "default", key: 54}
