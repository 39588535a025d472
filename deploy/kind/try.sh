#!/usr/bin/env bash
# Tries Steward on a real Kubernetes cluster in some ten minutes: chart, actuators and adapter. Run it from a checkout.
#
#   deploy/kind/try.sh                       # makes a cluster with kind, and removes it at the end
#   deploy/kind/try.sh --context NAME --image registry.example/steward:0.1.0 --adapter-image …
#
# Options:
#   --context NAME         use this cluster of your kubeconfig, in a namespace of its own
#   --image NAME           image of the service (target `api` of the Dockerfile) that the cluster can pull; by default
#                          it is built, and loaded into kind's cluster
#   --adapter-image NAME   the same, built with --build-arg EXTRAS=scaling; by default it is built
#   --node-image NAME      image of kind's node, such as kindest/node:v1.34.0: the version of Kubernetes
#   --namespace NAME       namespace, which must not be there yet; default: steward-try
#   --log FILE             where everything is written; default: steward-try.log
#   --keep                 leave cluster and namespace
#
# Prints a line PASS, FAIL or SKIP for each step. Exit status: 0 all passed, 1 a step failed, 2 usage error. The log
# holds versions, outputs, and after a failure what the cluster says: please attach it to a report of a fault.
# shellcheck disable=SC2317 # `step` calls the functions
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
context='' image='' adapter='' node='' namespace=steward-try log=$PWD/steward-try.log keep=no
cluster=steward-try failed=0 made=''
usage() { sed -n '2,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//;p}' "$0"; }
while [ $# -gt 0 ]; do
  case $1 in
    --keep) keep=yes; shift; continue ;;
    --help) usage; exit 0 ;;
    --context | --image | --adapter-image | --node-image | --namespace | --log)
      [ $# -gt 1 ] || { echo "$1 needs a value" >&2; exit 2; } ;;
    *) echo "$1 is unknown; accepted are --context, --image, --adapter-image, --node-image, --namespace, --log, --keep" >&2
       exit 2 ;;
  esac
  case $1 in
    --context) context=$2 ;;
    --image) image=$2 ;;
    --adapter-image) adapter=$2 ;;
    --node-image) node=$2 ;;
    --namespace) namespace=$2 ;;
    --log) log=$2 ;;
  esac
  shift 2
done
case ${image##*/} in
  '' | *:*) ;;
  *) echo "--image $image: NAME:TAG is accepted" >&2; exit 2 ;;
esac
if [ -n "$context" ] && { [ -z "$image" ] || [ -z "$adapter" ]; }; then
  echo "--context needs --image and --adapter-image: images that this cluster can pull" >&2
  exit 2
fi
: > "$log" || exit 2

note() { printf '%s\n' "$*" >> "$log"; }
tell() { printf '%s\n' "$*" | tee -a "$log"; }
# step NAME COMMAND…: runs it with its output in the log, and says whether it passed.
step() {
  local name=$1 began=$SECONDS
  shift
  note "--- $name: $*"
  if "$@" >> "$log" 2>&1; then
    tell "PASS $name ($((SECONDS - began)) s)"
  else
    failed=1
    tell "FAIL $name ($((SECONDS - began)) s); see $log"
    return 1
  fi
}
k() { kubectl --context "$context" --namespace "$namespace" "$@"; }
# until_ TIMES COMMAND…: repeats it every other second until it succeeds.
until_() {
  local left=$1
  shift
  until "$@"; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    sleep 2
  done
}
objects() {
  sed -e "s|@IMAGE@|$image|g" -e "s|@ADAPTER@|$adapter|g" -e "s|@NAMESPACE@|$namespace|g" "$here/$1" |
    k apply --filename -
}
steward() { k exec deploy/steward-api -- env "STEWARD_API_KEY=$key" steward "$@"; }

finish() {
  trap '' INT TERM # what follows cleans up
  if [ "$failed" = 1 ] && [ -n "$made" ]; then
    note "--- what the cluster says"
    {
      k get all,events --output wide
      k describe pods
      for pod in $(k get pods --output name); do
        echo "--- $pod"
        k logs --all-containers --tail 100 "$pod"
      done
    } 2>&1 | sed 's/stw_[A-Za-z0-9_-]*/stw_…/g' >> "$log" # a governed pod has its run's token as a variable
  fi
  if [ "$keep" = yes ]; then
    [ -z "$made" ] || tell "KEPT namespace $namespace of context $context"
  elif [ "$made" = cluster ]; then
    step "clean up" kind delete cluster --name "$cluster"
  elif [ "$made" = namespace ]; then
    step "clean up" remove
  fi
  if [ "$failed" = 0 ]; then tell "PASS everything; log: $log"; else tell "FAIL; log: $log"; fi
  exit "$failed"
}
remove() {
  k delete apiservice --selector "steward-try=$namespace"
  helm --kube-context "$context" --namespace "$namespace" uninstall steward
  k delete namespace "$namespace" --wait=false
}
trap 'failed=1; tell "FAIL: interrupted"; finish' INT TERM

versions() {
  kubectl version --client && helm version --short || return 1
  [ -n "$context" ] || kind version || return 1
  [ -n "$image" ] || docker version --format '{{.Client.Version}} {{.Server.Version}}' || return 1
  git -C "$root" describe --always --dirty || echo "no checkout of git"
  uname -srm
}
build() {
  docker build --target api --tag steward:try "$root" || return 1
  docker build --target api --build-arg EXTRAS=scaling --tag steward-adapter:try "$root"
}
create() {
  if kind get clusters | grep -qx "$cluster"; then
    echo "a cluster $cluster is there, as after --keep: kind delete cluster --name $cluster removes it"
    return 1
  fi
  made=cluster context=kind-$cluster # from here on, whatever becomes of it
  if [ -n "$node" ]; then
    kind create cluster --name "$cluster" --image "$node" --wait 120s
  else
    kind create cluster --name "$cluster" --wait 120s
  fi
}
server() {
  local said
  said=$(k version --output json) || return 1
  printf '%s\n' "$said"
  minor=$(printf '%s' "$said" | tr -d ' \n' | sed -n 's/.*"serverVersion":{[^}]*"minor":"\([0-9]*\).*/\1/p')
  [ -n "$minor" ]
}
new_namespace() { kubectl --context "$context" create namespace "$namespace"; }
install() {
  helm --kube-context "$context" --namespace "$namespace" upgrade --install steward "$root/deploy/helm/steward" \
    --set "image.repository=${image%:*}" --set "image.tag=${image##*:}" --set api.replicas=1 --set worker.replicas=0 \
    --set api.resources.requests.cpu=100m --set "podAnnotations.try=$1" --wait --timeout 5m
}
first_key() {
  local said
  said=$(k exec deploy/steward-api -- steward key create --scopes admin --json) || return 1
  key=$(printf '%s' "$said" | grep -o 'stw_[A-Za-z0-9_-]*' | tail -n 1)
  [ -n "$key" ] && k create secret generic steward-key "--from-literal=key=$key"
}
# The pod's limit differs from its first one, which is in the log, and its container was not started again.
resized() {
  local now
  now=$(k get pods --selector steward-name=governed --output "jsonpath=$1") || return 1
  echo "limit and restarts: $now"
  case $now in *' 0') ;; *) return 1 ;; esac
  [ -n "$before" ] || before=$now
  [ "$now" != "$before" ]
}
scaled() {
  local now
  now=$(k get deployment scaled --output 'jsonpath={.spec.replicas}') || return 1
  echo "replicas: $now"
  [ -n "$now" ] && [ "$now" != 0 ]
}
ended() {
  k wait --for condition=complete --timeout "$2" "job/$1"
  local status=$?
  k logs "job/$1"
  return "$status"
}
outcome() { steward run list --state finished --json | grep "\"workload\": *\"$1\""; }
certificate() {
  local folder status
  folder=$(mktemp -d) || return 1
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=steward-adapter.$namespace.svc" \
    -keyout "$folder/tls.key" -out "$folder/tls.crt" &&
    k create secret tls steward-adapter "--cert=$folder/tls.crt" "--key=$folder/tls.key"
  status=$?
  rm -r "$folder"
  return "$status"
}
metrics() {
  k get --raw "/apis/external.metrics.k8s.io/v1beta1/namespaces/$namespace/steward_decided_allocation" |
    grep ExternalMetricValueList
}

tell "Steward on Kubernetes, $(date -u +%Y-%m-%dT%H:%M:%SZ)"
step "programs" versions || finish
if [ -z "$image" ]; then
  step "images" build || finish
  image=steward:try adapter=steward-adapter:try
fi
if [ -z "$context" ]; then
  step "cluster" create || finish
  step "images in the cluster" kind load docker-image "$image" "$adapter" --name "$cluster" || finish
fi
minor='' key='' before=''
step "Kubernetes" server || finish
tell "     Kubernetes 1.$minor"
step "namespace" new_namespace || finish
made=${made:-namespace}
step "PostgreSQL and Redis" objects services.yaml || finish
step "both are ready" k wait --for condition=available --timeout 180s deployment/postgres deployment/redis || finish
step "chart" install first || finish
step "first key" first_key || finish
step "the service's health" steward health || finish

step "governed runs are started" objects runs.yaml || finish
step "a Deployment is scaled" until_ 60 scaled
if [ "$minor" -ge 33 ]; then
  pod='{.items[0].spec.containers[0].resources.limits.cpu} {.items[0].status.containerStatuses[0].restartCount}'
  step "a pod is resized in place" until_ 60 resized "$pod"
  step "the governed Job ends" ended governed 300s
  step "its outcome" outcome governed
else
  tell "SKIP a pod is resized in place: Kubernetes 1.$minor, from 1.33 on"
fi
step "the scaling Job ends" ended scaling 180s
step "its outcome" outcome scaling

if k get apiservice v1beta1.external.metrics.k8s.io >> "$log" 2>&1; then
  tell "SKIP external metrics: this cluster has a provider of them"
else
  step "the adapter's certificate" certificate &&
    step "adapter" objects adapter.yaml &&
    step "the adapter is ready" k wait --for condition=available --timeout 120s deployment/steward-adapter &&
    step "external metrics are answered" until_ 30 metrics
fi
step "an upgrade of the chart" install second
step "runs are still there" outcome scaling
finish
