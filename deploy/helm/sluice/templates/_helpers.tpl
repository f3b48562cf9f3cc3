{{- define "sluice.name" -}}
{{- .Values.nameOverride | default .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "sluice.secret" -}}
{{- if .Values.existingSecret -}}{{ .Values.existingSecret }}
{{- else if .Values.secretSettings -}}{{ include "sluice.name" . }}
{{- end -}}
{{- end -}}

{{- define "sluice.claim" -}}
{{- .Values.storage.existingClaim | default (printf "%s-data" (include "sluice.name" .)) -}}
{{- end -}}
