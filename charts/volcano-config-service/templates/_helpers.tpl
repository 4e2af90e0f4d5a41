{{/*
What parent and subchart share. Names of objects are fixed (numaweb-*): roles belong to the whole cluster, appliers are started under them, and so there is
one installation in a cluster.
*/}}

{{/* Of an image: dict "root" $ "image" .Values... */}}
{{- define "numaweb.image" -}}
{{- $registry := .root.Values.global.imageRegistry | default .image.registry -}}
{{- $name := printf "%s/%s" $registry .image.repository | trimPrefix "/" -}}
{{- if .image.digest }}{{ $name }}@{{ .image.digest }}{{ else }}{{ $name }}:{{ .image.tag }}{{ end -}}
{{- end }}

{{/* Labels of an object: dict "root" $ "part" "worker" */}}
{{- define "numaweb.labels" -}}
{{ include "numaweb.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: volcano-config-service
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Labels by which pods are found; they never change. */}}
{{- define "numaweb.selector" -}}
app.kubernetes.io/name: numaweb
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{/* Of every pod that keeps to Pod Security's profile "restricted": dict "user" 10001 */}}
{{- define "numaweb.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .user }}
runAsGroup: {{ .user }}
fsGroup: {{ .user }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "numaweb.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "numaweb.pullSecrets" -}}
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Only machines that the images are built for: dict "root" $ "tolerations" ... */}}
{{- define "numaweb.architectures" -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - key: kubernetes.io/arch
            operator: In
            values: {{ toJson .Values.global.architectures }}
{{- end }}

{{/* Where the pods of a part run: dict "root" $ "part" "worker" */}}
{{- define "numaweb.placement" -}}
affinity:
  {{- include "numaweb.architectures" .root | nindent 2 }}
{{- with .root.Values.global.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .root.Values.global.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
topologySpreadConstraints:
  # A wish: a cluster of one node gets all of them, too.
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "numaweb.selector" . | nindent 8 }}
{{- end }}

{{/* The account of those who may change a cluster, where that is switched on; else one without a right. Also of web: it asks for the rights before it lets somebody confirm. */}}
{{- define "numaweb.changes" -}}
{{- if or .Values.global.rollouts.enabled .Values.global.cleanup.enabled }}true{{ end -}}
{{- end }}
{{- define "numaweb.changingAccount" -}}
{{- if include "numaweb.changes" . }}numaweb-worker{{ else }}numaweb-web{{ end -}}
{{- end }}

{{/* Environment of every process: names as in docker-compose.yml. */}}
{{- define "numaweb.environment" -}}
- {name: NUMAWEB_DATABASE_URL_FILE, value: /run/secrets/numaweb/database_url}
- {name: NUMAWEB_REDIS_URL_FILE, value: /run/secrets/numaweb/redis_url}
- {name: NUMAWEB_SECRET_KEY_FILE, value: /run/secrets/numaweb/secret_key}
- {name: NUMAWEB_NAMESPACE, value: {{ .Release.Namespace | quote }}}
{{- with .Values.global.rollouts }}
- {name: NUMAWEB_ROLLOUTS, value: {{ ternary "1" "0" .enabled | quote }}}
{{- end }}
- {name: NUMAWEB_CLEANUP, value: {{ ternary "1" "0" .Values.global.cleanup.enabled | quote }}}
{{- range $name, $value := .Values.global.settings }}
- {name: {{ $name }}, value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}}
{{- end }}
{{- end }}

{{/* Sign-in at a provider, from the values of the pages. Of setup, too: what signs people in has tables of its own. */}}
{{- define "numaweb.oauthEnvironment" -}}
{{- $oauth := .oauth }}
{{- $roles := list }}
{{- range $group, $role := $oauth.roles }}{{ $roles = append $roles (printf "%s=%s" $group $role) }}{{ end -}}
- {name: NUMAWEB_OIDC_URL, value: {{ $oauth.url | quote }}}
- {name: NUMAWEB_OIDC_NAME, value: {{ $oauth.name | quote }}}
- {name: NUMAWEB_OIDC_CLIENT_ID, value: {{ $oauth.clientId | quote }}}
- {name: NUMAWEB_OIDC_SCOPES, value: {{ join "," $oauth.scopes | quote }}}
- {name: NUMAWEB_OIDC_GROUPS_CLAIM, value: {{ $oauth.groupsClaim | quote }}}
- {name: NUMAWEB_OIDC_ROLES, value: {{ join "," $roles | quote }}}
{{- end }}

{{/* Secrets as files: dict "root" $ "orders" true, for those who sign orders. */}}
{{- define "numaweb.volumes" -}}
{{- $global := .root.Values.global -}}
- name: tmp
  emptyDir: {}
# Nothing is kept there in a cluster.
- name: state
  emptyDir: {}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ $global.database.existingSecret | default "numaweb" }}
          items: [{key: database_url, path: database_url}]
      - secret:
          name: {{ $global.redis.existingSecret | default "numaweb" }}
          items: [{key: redis_url, path: redis_url}]
      - secret:
          name: {{ $global.secretKey.existingSecret | default "numaweb" }}
          items: [{key: secret_key, path: secret_key}]
      {{- if and .orders $global.rollouts.enabled }}
      - secret:
          name: {{ $global.rollouts.existingSecret | default "numaweb-order-key" }}
          items: [{key: order_key, path: order_key}]
      {{- end }}
{{- end }}

{{/*
The pod of a process: dict "root" $ "part" "worker" "command" (list ...) "account" "..." "token" true "orders" true "resources" ... and, where there are, "env", "more"
(ports and probes), "mounts" and "volumes" as YAML, and "restart" of a Job. It begins when the tables are there, whoever makes them.
*/}}
{{- define "numaweb.pod" -}}
metadata:
  labels:
    {{- include "numaweb.labels" . | nindent 4 }}
spec:
  serviceAccountName: {{ .account }}
  automountServiceAccountToken: {{ .token | default false }}
  enableServiceLinks: false
  {{- include "numaweb.pullSecrets" .root | nindent 2 }}
  securityContext:
    {{- include "numaweb.podSecurity" (dict "user" 10001) | nindent 4 }}
  {{- include "numaweb.placement" . | nindent 2 }}
  {{- with .restart }}
  restartPolicy: {{ . }}
  {{- end }}
  # Longer than a worker takes to hand over what it does.
  terminationGracePeriodSeconds: 60
  initContainers:
    - name: wait
      {{- include "numaweb.container" (merge (dict "command" (list "python" "manage.py" "setup" "--only-wait")) .) | nindent 6 }}
  containers:
    - name: {{ .part }}
      {{- include "numaweb.container" . | nindent 6 }}
      {{- with .more }}
      {{- . | nindent 6 }}
      {{- end }}
  volumes:
    {{- include "numaweb.volumes" . | nindent 4 }}
    {{- with .volumes }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "numaweb.container" -}}
image: {{ include "numaweb.image" (dict "root" .root "image" .root.Values.global.image) }}
imagePullPolicy: {{ .root.Values.global.image.pullPolicy }}
command: {{ toJson .command }}
securityContext:
  {{- include "numaweb.containerSecurity" . | nindent 2 }}
env:
  {{- include "numaweb.environment" .root | nindent 2 }}
  {{- if and .orders .root.Values.global.rollouts.enabled }}
  - {name: NUMAWEB_ORDER_KEY_FILE, value: /run/secrets/numaweb/order_key}
  {{- end }}
  {{- with .env }}
  {{- . | nindent 2 }}
  {{- end }}
{{- with .root.Values.global.secretSettings.existingSecret }}
envFrom:
  - secretRef: {name: {{ . }}}
{{- end }}
resources: {{ toJson .resources }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: state, mountPath: /var/lib/numaweb}
  - {name: secrets, mountPath: /run/secrets/numaweb, readOnly: true}
  {{- with .mounts }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Of a part with several replicas, one of which stays when nodes are drained: dict "root" $ "part" "worker" "replicas" 2 */}}
{{- define "numaweb.disruptionBudget" -}}
{{- if gt (int .replicas) 1 }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: numaweb-{{ .part }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "numaweb.labels" . | nindent 4 }}
spec:
  minAvailable: 1
  {{- if semverCompare ">=1.27.0-0" .root.Capabilities.KubeVersion.Version }}
  # A pod that is not well anyway holds no drain up.
  unhealthyPodEvictionPolicy: AlwaysAllow
  {{- end }}
  selector:
    matchLabels:
      {{- include "numaweb.selector" . | nindent 6 }}
{{- end }}
{{- end }}
