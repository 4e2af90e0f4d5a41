"""Values that people give, each switch both ways, by a name for tests."""

from typing import Any

from tests.deploy.helm import WEB

TLS = {
    f"{WEB}.tls.enabled": True,
    f"{WEB}.hosts": ["numa.example.org"],
    f"{WEB}.tls.trustedProxies": ["10.0.0.0/8"],
}
OAUTH = {
    f"{WEB}.enableOAuth": True,
    f"{WEB}.oauth": {
        "url": "https://id.example.org",
        "clientId": "numaweb",
        "existingSecret": "oauth",
        "roles": {"admins": "administrator", "all": "viewer"},
    },
}
EXTERNAL = {
    "global.database.existingSecret": "db",
    "global.redis.existingSecret": "redis",
    "global.secretKey.existingSecret": "key",
}
CASES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "alone": {f"{WEB}.enableOAuth": False, f"{WEB}.openFuyao": False},
    "oauth": OAUTH,
    "rollouts": {"global.rollouts.enabled": True},
    "own-order-key": {"global.rollouts": {"enabled": True, "existingSecret": "orders"}},
    "cleanup": {"global.cleanup.enabled": True},
    "external": EXTERNAL,
    "memory-only": {"postgresql.persistence.enabled": False, "redis.persistence.enabled": False},
    "storage-class": {
        "postgresql.persistence.storageClass": "fast",
        "redis.persistence.storageClass": "fast",
    },
    "tls-ingress": {
        **TLS,
        f"{WEB}.service.type": "ClusterIP",
        f"{WEB}.ingress": {"enabled": True, "className": "nginx"},
    },
    "no-exporter": {"exporter.enabled": False},
    "exporter-tls": {"exporter.tls.enabled": True, "exporter.kubeletDir": "/data/kubelet"},
    "drop-ins": {"exporter.kubeletDropIns": "/etc/kubernetes/kubelet.conf.d"},
    "one-of-each": {"worker.replicas": 1, "watcher.replicas": 1, f"{WEB}.replicas": 1},
    "no-policies": {"global.networkPolicies": False},
    "offline": {
        "global.imageRegistry": "mirror.example.org/k8s",
        "global.imagePullSecrets": ["mirror"],
        "global.rollouts.enabled": True,
        "exporter.image.digest": "sha256:" + "0" * 64,
    },
    "settings": {
        "global.settings": {"NUMAWEB_TIME_ZONE": "Asia/Shanghai", "NUMAWEB_COLLECT_BYTES": 2097152},
        "global.secretSettings.existingSecret": "mail",
    },
    "dashboard": {"monitoring.dashboard.enabled": True},
    "placed": {
        "global.architectures": ["arm64"],
        "global.nodeSelector": {"pool": "system"},
        "global.tolerations": [{"key": "system", "operator": "Exists"}],
        f"{WEB}.allowedFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
    },
}
FOREIGN: dict[str, dict[str, Any]] = {
    "prometheus-operator": {
        "monitoring.serviceMonitor": {"enabled": True, "labels": {"release": "prom"}},
        "monitoring.prometheusRule.enabled": True,
    },
    "gateway": {f"{WEB}.httpRoute": {"enabled": True, "parentRefs": [{"name": "gate"}]}},
    "cert-manager": {
        **TLS,
        f"{WEB}.tls.issuerRef": {"name": "ours", "kind": "ClusterIssuer"},
        "exporter.tls": {"enabled": True, "issuerRef": {"name": "ours", "kind": "Issuer"}},
    },
}
"""Objects of others' definitions, which no API server of ours serves."""
