#!/bin/sh
# Fetch what the tests of the chart and of compose.yaml need into .tools, with Go: Helm, kubeconform, and the schemas of the
# resources of others. Run again, it finds nothing to do.
set -eu
cd "$(dirname "$0")/../.."
helm=helm.sh/helm/v3/cmd/helm@v3.22.0
kubeconform=github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0
cloudnative=github.com/cloudnative-pg/cloudnative-pg@v1.28.0
prometheus=github.com/prometheus-operator/prometheus-operator@v0.85.0
compose=github.com/compose-spec/compose-go/v2@v2.16.2

wanted="$helm $kubeconform $cloudnative $prometheus $compose"
[ "$(cat .tools/wanted 2>/dev/null)" != "$wanted" ] || exit 0
command -v go >/dev/null || {
    echo "cdb: Go 1.24 or newer is needed for this" >&2
    exit 1
}

# The directory of a module's source, checked against the public record of checksums.
source_of() {
    go mod download -json "$1" | sed -n 's/.*"Dir": "\(.*\)",\{0,1\}$/\1/p'
}

mkdir -p .tools/crds
operator=$(source_of $cloudnative)
for kind in clusters poolers scheduledbackups; do
    install --mode=644 "$operator/config/crd/bases/postgresql.cnpg.io_$kind.yaml" .tools/crds/
done
install --mode=644 "$(source_of $prometheus)/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml" .tools/crds/
install --mode=644 "$(source_of $compose)/schema/compose-spec.json" .tools/
for program in $helm $kubeconform; do
    echo "Building $program"
    # Without optimising, which would take a third longer.
    GOBIN=$PWD/.tools GOFLAGS=-trimpath CGO_ENABLED=0 go install -gcflags='all=-N -l' -ldflags='-s -w' "$program"
done
echo "$wanted" >.tools/wanted
