{{- define "sluice.pod" -}}
{{- $cluster := eq .Values.mode "cluster" -}}
{{- $secret := include "sluice.secret" . -}}
{{- if and $cluster (not $secret) }}
{{- fail "mode cluster needs secretSettings or existingSecret: the index, and the first account's keys" }}
{{- end }}
metadata:
  labels: {{- include "sluice.selector" . | nindent 4 }}
  annotations:
    prometheus.io/scrape: "true"
    prometheus.io/port: "9001"
    {{- if .Values.settings.tls_cert }}
    prometheus.io/scheme: https
    {{- end }}
    checksum/config: {{ printf "%s%s" (.Values.secretSettings | toJson) .Values.init | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  # SLUICE_STOP_DELAY + SLUICE_GRACEFUL_TIMEOUT, and ten seconds until the last process is killed
  terminationGracePeriodSeconds: 60
  automountServiceAccountToken: false
  # else a service `sluice` sets SLUICE_PORT to a URL
  enableServiceLinks: false
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    # a store has many files, and keys that its group must not read: their owner is set once
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- if $cluster }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "sluice.selector" . | nindent 10 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: sluice
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve]
      env: {{- include "sluice.env" . | nindent 8 }}
      ports:
        - {name: s3, containerPort: 9000}
        - {name: admin, containerPort: 9001}
      startupProbe:
        httpGet: {path: /-/health/live, port: s3}
        periodSeconds: 2
        failureThreshold: 150
      readinessProbe:
        httpGet: {path: /-/health/ready, port: s3}
        periodSeconds: 3
        timeoutSeconds: 6
        failureThreshold: 1
      # `live` is up while the process runs: a store or an index that is away is no reason for a restart
      livenessProbe:
        httpGet: {path: /-/health/live, port: s3}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: data, mountPath: /data}
        {{- if $secret }}
        - {name: secrets, mountPath: /secrets, readOnly: true}
        {{- end }}
        {{- if .Values.init }}
        - {name: init, mountPath: /init, readOnly: true}
        {{- end }}
        - {name: tmp, mountPath: /tmp}
  volumes:
    {{- if or $cluster .Values.storage.existingClaim }}
    - name: data
      persistentVolumeClaim: {claimName: {{ include "sluice.claim" . }}}
    {{- end }}
    {{- if $secret }}
    - name: secrets
      secret: {secretName: {{ $secret }}, defaultMode: 0440}
    {{- end }}
    {{- if .Values.init }}
    - name: init
      projected:
        defaultMode: 0440
        sources:
          - configMap: {name: {{ include "sluice.name" . }}-init}
          {{- with .Values.initSecret }}
          - secret: {name: {{ . }}}
          {{- end }}
    {{- end }}
    # locks and counters of a cluster's gateway are its own: never on the shared volume
    - name: tmp
      emptyDir: {medium: Memory, sizeLimit: 64Mi}
{{- end -}}

{{- define "sluice.env" -}}
{{- $settings := dict "admin_host" "0.0.0.0" "workers" "2" "stop_delay" "10" -}}
{{- if include "sluice.secret" . }}{{- $_ := set $settings "config" "/secrets/sluice.toml" }}{{- end }}
{{- if .Values.init }}{{- $_ := set $settings "init_file" "/init/init.toml" }}{{- end }}
{{- if eq .Values.mode "cluster" }}
{{- $store := dict "path" "/data/store" "driver" .Values.storage.driver }}
{{- $_ := set $settings "stores" (dict "default" $store | toJson) }}
{{- $_ := set $settings "wait_index" "120" }}
{{- else }}
{{- $_ := set $settings "data" "/data/store" }}
{{- end }}
{{- if .Values.console.enabled }}
{{- with .Values.console.url }}{{- $_ := set $settings "console_url" . }}{{- end }}
{{- with .Values.console.s3Url }}{{- $_ := set $settings "public_url" . }}{{- end }}
{{- end }}
{{- range $name, $value := merge (deepCopy .Values.settings) $settings }}
- name: SLUICE_{{ upper $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}
