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

{{- define "cdb.primary" -}}
{{- if .Values.database.cluster.enabled }}{{ include "cdb.cluster" . }}-rw:5432{{ else }}{{ required "database.external.host" .Values.database.external.host }}:{{ .Values.database.external.port }}{{ end }}
{{- end }}

{{/* Addresses of the streaming replicas, separated by commas. Each must lead to a single server, because cdb compares its position with
that of the primary. The operator's service for replicas does so only if there is one replica. */}}
{{- define "cdb.replicas" -}}
{{- $addresses := list -}}
{{- if not .Values.database.cluster.enabled }}
{{- range .Values.database.external.replicas }}{{ $addresses = append $addresses (ternary . (printf "%s:5432" .) (contains ":" .)) }}{{ end }}
{{- else if eq (int .Values.database.cluster.instances) 2 }}
{{- $addresses = append $addresses (printf "%s-ro:5432" (include "cdb.cluster" .)) }}
{{- else if gt (int .Values.database.cluster.instances) 2 }}
{{- range untilStep 1 (int (add1 .Values.database.cluster.instances)) 1 }}{{ $addresses = append $addresses (printf "%s-replica-%d:5432" (include "cdb.cluster" $) .) }}{{ end }}
{{- end -}}
{{ join "," $addresses }}
{{- end }}

{{/* The URL of the primary. The password is in PGPASSWORD. */}}
{{- define "cdb.directly" -}}
- name: DATABASE_URL
  value: {{ printf "postgresql://%s@%s/%s" .Values.database.user (include "cdb.primary" .) .Values.database.name | quote }}
{{- end }}

{{/* The URLs of the primary and of the replicas. */}}
{{- define "cdb.database" -}}
{{ include "cdb.directly" . }}
{{- $urls := list }}
{{- range splitList "," (include "cdb.replicas" .) | compact }}
{{- $urls = append $urls (printf "postgresql://%s@%s/%s" $.Values.database.user . $.Values.database.name) }}
{{- end }}
{{- with $urls }}
- name: DATABASE_REPLICA_URLS
  value: {{ join "," . | quote }}
{{- end }}
{{- end }}

{{- define "cdb.passwordSecret" -}}
{{- if .Values.database.cluster.enabled }}{{ include "cdb.cluster" . }}-app{{ else }}{{ required "database.external.existingSecret" .Values.database.external.existingSecret }}{{ end }}
{{- end }}

{{/* The environment of all containers with cdb's images. */}}
{{- define "cdb.settings" -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: CDB_ALLOWED_HOSTS
  value: {{ printf "%s,$(POD_IP)" (join "," (concat .Values.hosts (list (printf "%s-nginx" (include "cdb.fullname" .)) (printf "%s-nginx.%s" (include "cdb.fullname" .) .Release.Namespace) (printf "%s-nginx.%s.svc" (include "cdb.fullname" .) .Release.Namespace)))) | quote }}
- name: CDB_THREADS
  value: {{ .Values.threads | quote }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}

{{- define "cdb.password" -}}
- name: PGPASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "cdb.passwordSecret" . }}, key: password}}
{{- end }}

{{/* The environment of the application. */}}
{{- define "cdb.environment" -}}
{{ include "cdb.settings" . }}
{{ include "cdb.password" . }}
- name: CDB_SECRET_KEY
  valueFrom: {secretKeyRef: {name: {{ required "existingSecret: the name of a Secret with CDB_SECRET_KEY" .Values.existingSecret }}, key: CDB_SECRET_KEY}}
{{- end }}

{{- define "cdb.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "cdb.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Arguments: the context, and the component. */}}
{{- define "cdb.pod" -}}
{{- $root := index . 0 -}}
serviceAccountName: {{ include "cdb.fullname" $root }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {{- include "cdb.podSecurity" $root | nindent 2 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with index . 1 }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "cdb.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{/* Arguments: the context, the component, its port and that port's name. */}}
{{- define "cdb.service" -}}
{{- $root := index . 0 -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "cdb.fullname" $root }}-{{ index . 1 }}
  labels: {{- include "cdb.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ index . 1 }}
spec:
  selector: {{- include "cdb.selector" $root | nindent 4 }}
    app.kubernetes.io/component: {{ index . 1 }}
  ports:
    - {name: {{ index . 3 }}, port: {{ index . 2 }}, targetPort: {{ index . 3 }}}
{{- end }}

{{- define "cdb.disruptionBudget" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.podDisruptionBudget.enabled }}
---
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
{{- end }}
