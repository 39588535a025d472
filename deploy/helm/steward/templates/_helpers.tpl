{{- define "steward.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "steward.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "steward.labels" -}}
{{ include "steward.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "steward.image" -}}
{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
{{- end }}

{{- define "steward.workerImage" -}}
{{ printf "%s:%s" (default (printf "%s-worker" .Values.image.repository) .Values.image.workerRepository) (default .Chart.AppVersion .Values.image.tag) | quote }}
{{- end }}

{{- define "steward.environment" -}}
- name: STEWARD_DATABASE_URL
  valueFrom: { secretKeyRef: { name: {{ .Values.secretName | quote }}, key: database-url } }
- name: STEWARD_BROKER_URL
  valueFrom: { secretKeyRef: { name: {{ .Values.secretName | quote }}, key: broker-url } }
- name: STEWARD_WEBHOOK_URLS
  valueFrom: { secretKeyRef: { name: {{ .Values.secretName | quote }}, key: webhook-urls, optional: true } }
- name: STEWARD_WEBHOOK_SECRET
  valueFrom: { secretKeyRef: { name: {{ .Values.secretName | quote }}, key: webhook-secret, optional: true } }
- { name: STEWARD_DATA_DIR, value: /data }
- { name: HOME, value: /tmp }
{{- range $name, $value := .Values.settings }}
- { name: STEWARD_{{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{- define "steward.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "steward.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "steward.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
