{{- define "cdb.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "cdb.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cdb.labels" -}}
{{ include "cdb.selector" . }}
app.kubernetes.io/version: {{ include "cdb.tag" . | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "cdb.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Arguments: the context, and "" or "-nginx". */}}
{{- define "cdb.image" -}}
{{- $root := index . 0 -}}
image: {{ printf "%s%s:%s" $root.Values.image.repository (index . 1) (include "cdb.tag" $root) | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
{{- end }}

{{- define "cdb.cluster" -}}
{{ include "cdb.fullname" . }}-db
{{- end }}

{{- define "cdb.databaseSecret" -}}
{{- if .Values.database.cluster.enabled }}{{ include "cdb.cluster" . }}-app{{ else }}{{ required "database.external.existingSecret" .Values.database.external.existingSecret }}{{ end }}
{{- end }}

{{/* The URL of a server of the cluster, by the name of its Service. The password is in PGPASSWORD. */}}
{{- define "cdb.clusterURL" -}}
postgresql://cdb@{{ . }}:5432/cdb?sslmode=verify-ca&sslrootcert=/etc/cdb/database/ca.crt
{{- end }}

{{/* The primary itself, for what must not go through PgBouncer. */}}
{{- define "cdb.primary" -}}
- name: DATABASE_URL
  {{- if .Values.database.cluster.enabled }}
  value: {{ include "cdb.clusterURL" (printf "%s-rw" (include "cdb.cluster" .)) | quote }}
  {{- else }}
  value: {{ required "database.external.url" .Values.database.external.url | quote }}
  {{- end }}
{{- end }}

{{/* The primary and its replicas. The URL of a replica must lead to a single server, because cdb compares its position with that of
the primary. The operator's Service for replicas does so only if there is one, so each server of the cluster has a Service. */}}
{{- define "cdb.database" -}}
{{- $urls := .Values.database.external.replicaUrls }}
{{- if .Values.database.cluster.enabled }}
{{- $urls = list }}
{{- if gt (int .Values.database.cluster.instances) 1 }}
{{- range untilStep 1 (int (add1 .Values.database.cluster.instances)) 1 }}
{{- $urls = append $urls (include "cdb.clusterURL" (printf "%s-replica-%d" (include "cdb.cluster" $) .)) }}
{{- end }}
# A slot for each replica: what they all have is not lost by a failover.
- name: CDB_REPLICATION_SLOTS
  value: {{ sub .Values.database.cluster.instances 1 | quote }}
{{- end }}
{{- end }}
{{- if and .Values.database.cluster.enabled .Values.database.cluster.poolers }}
- name: DATABASE_URL
  value: {{ include "cdb.clusterURL" (printf "%s-pooler" (include "cdb.cluster" .)) | quote }}
{{- else }}
{{ include "cdb.primary" . }}
{{- end }}
{{- with $urls }}
- name: DATABASE_REPLICA_URLS
  value: {{ join "," . | quote }}
{{- end }}
{{- end }}

{{/* The environment of all containers with cdb's images. */}}
{{- define "cdb.settings" -}}
{{- $nginx := printf "%s-nginx" (include "cdb.fullname" .) -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: CDB_ALLOWED_HOSTS
  value: {{ printf "%s,$(POD_IP)" (join "," (concat .Values.hosts (list $nginx (printf "%s.%s" $nginx .Release.Namespace) (printf "%s.%s.svc" $nginx .Release.Namespace)))) | quote }}
- name: CDB_THREADS
  value: {{ .Values.threads | quote }}
{{- $own := dict }}
{{- if and .Values.ingress.enabled .Values.ingress.tlsSecret }}{{ $own = dict "CDB_TLS" true }}{{ end }}
{{- range $name, $value := merge (deepCopy .Values.settings) $own }}
- name: {{ $name }}
  {{- /* toString writes large numbers with an exponent. */}}
  value: {{ ternary (toJson $value) (toString $value) (kindIs "float64" $value) | quote }}
{{- end }}
{{- end }}

{{/* The environment of the application. */}}
{{- define "cdb.environment" -}}
{{ include "cdb.settings" . }}
- name: PGPASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "cdb.databaseSecret" . }}, key: password}}
- name: CDB_SECRET_KEY
  valueFrom: {secretKeyRef: {name: {{ required "existingSecret: the name of a Secret with CDB_SECRET_KEY" .Values.existingSecret }}, key: CDB_SECRET_KEY}}
- name: CDB_MAIL_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.existingSecret }}, key: CDB_MAIL_URL, optional: true}}
{{- if .Values.issuersSecret }}
- name: CDB_ISSUERS_FILE
  value: /etc/cdb/issuers/issuers.toml
{{- end }}
{{- end }}

{{/* What the application reads and writes. */}}
{{- define "cdb.mounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: data, mountPath: /var/lib/cdb}
- {name: database, mountPath: /etc/cdb/database, readOnly: true}
{{- if .Values.issuersSecret }}
- {name: issuers, mountPath: /etc/cdb/issuers, readOnly: true}
{{- end }}
{{- end }}

{{- define "cdb.volumes" -}}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 64Mi}
- name: data
  emptyDir: {sizeLimit: 64Mi}
# The certificate by which PostgreSQL is verified.
- name: database
  {{- if .Values.database.cluster.enabled }}
  secret: {secretName: {{ include "cdb.cluster" . }}-ca, items: [{key: ca.crt, path: ca.crt}]}
  {{- else }}
  secret: {secretName: {{ include "cdb.databaseSecret" . }}, items: [{key: ca.crt, path: ca.crt}], optional: true}
  {{- end }}
{{- if .Values.issuersSecret }}
- name: issuers
  secret: {secretName: {{ .Values.issuersSecret }}}
{{- end }}
{{- end }}

{{- define "cdb.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Arguments: the context, and the component if its pods are spread over zones and nodes. */}}
{{- define "cdb.pod" -}}
{{- $root := index . 0 -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with index . 1 }}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "cdb.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ index $ 1 }}
    # Pods of the version before do not count.
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end }}

{{- define "cdb.disruptionBudget" -}}
{{- $root := index . 0 -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "cdb.fullname" $root }}-{{ index . 1 }}
  labels: {{- include "cdb.labels" $root | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "cdb.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ index . 1 }}
{{- end }}
