# Every target of the project. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := $(CURDIR)/bin
export GOBIN := $(BIN)
export KUBEBUILDER_ASSETS := $(BIN)/kube
# Paths are trimmed and cgo is off, so that tests, programs and all clones share Go's build cache.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)
export CGO_ENABLED ?= 0
export HYPERSHIFT_DEV_DIR ?= /var/lib/hypershift-maas

VERSION ?= $(shell git describe --always --dirty --match 'v[0-9]*' 2>/dev/null || echo unknown)
GOLANGCI_LINT_VERSION := v2.15.0
# HYPERSHIFT_IMAGE is the operator's image that the built CLI installs when it is told no other; empty for none.
HYPERSHIFT_IMAGE ?=
LDFLAGS := -s -w -X github.com/openshift/hypershift/support/version.commit=$(VERSION) \
	-X github.com/openshift/hypershift/cmd/install.builtImage=$(HYPERSHIFT_IMAGE)

# The same sources give the same program anywhere.
STATIC_FLAGS := -trimpath -ldflags '-s -w'
STATIC_BUILD := go build $(STATIC_FLAGS)

# The programs of the product image and those of the embedded environment. Go decides by itself what is stale.
PRODUCT := hypershift hcp hypershift-operator control-plane-operator ignition-server cluster-api-provider-maas node-network tunnel
TOOLS := devcluster maas-simulator hypershift-demo
package/hypershift := ./cmd/hypershift
package/hcp := ./product-cli
package/devcluster := ./test/devcluster
package/maas-simulator := ./test/maas-simulator
package/hypershift-demo := ./test/demo

include $(wildcard hack/make/*.mk)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST) | sort

.PHONY: build
build: product $(TOOLS) node-agent ## Build every program of ours into bin/

# node-agent runs on machines, and comes to them out of the product's image, which has it for each architecture.
NODE_AGENT_ARCHS ?= $(shell go env GOARCH)
.PHONY: node-agent
node-agent:
	for arch in $(NODE_AGENT_ARCHS); do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/node-agent/$$arch ./node-agent; \
	done

.PHONY: $(PRODUCT) $(TOOLS)
$(PRODUCT) $(TOOLS):
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/$@ $(or $(package/$@),./$@)

$(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION):
	hack/cached $@ $(GOLANGCI_LINT_VERSION) -- bash -ec 'go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION) && mv $(BIN)/golangci-lint $@'

.PHONY: hooks
hooks: ## Let git check the subjects of commits in this clone
	git config core.hooksPath hack/hooks

.PHONY: lint-binary
lint-binary: $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)

.PHONY: lint
lint: $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION) ## Check style and the borders between packages
	$< run ./...
	cd api && $< run --config ../.golangci.yaml ./...

.PHONY: verify
verify: verify-generate verify-api verify-modules verify-suites verify-constants verify-licences verify-versions verify-scripts verify-prose verify-sources verify-vulnerabilities ## Check all that needs no test: generated code, API, modules, names, scripts, prose
	go vet ./hack/...
	gofmt -l $$(git ls-files '*.go') | (! grep .)

.PHONY: test
test: ## Run lint and every short test: unit, integration, and the core scenarios of test-e2e
	@# The scenarios come first, beside lint alone: two processors that also run unit tests do not answer them in time.
	go run ./hack/test build environment,e2e-short+verify,lint,compile packages,api

.PHONY: test-all
test-all: ## Run every suite one after another, as before a release: more than ten hours
	for suite in $(SUITES); do $(MAKE) --no-print-directory $$suite || failed="$$failed $$suite"; done; \
	[ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }
# Each suite is a job of the nightly workflow.
SUITES := test test-long test-e2e test-upgrade test-ha test-rotation test-race test-takeover test-cluster-api test-kube-versions test-alone test-chart test-console fuzz test-mutation test-openshift

.PHONY: test-unit
test-unit: kube-binaries ## Run the tests of every package
	go run ./hack/test environment,unit,api

.PHONY: test-integration
test-integration: kube-binaries ## Run the tests that need a kube-apiserver and cross packages
	go run ./hack/test integration

.PHONY: test-repeat
test-repeat: kube-binaries ## Run the tests of changed packages 20 times under load (REPEAT_BASE names the commit to compare with)
	go run ./hack/test repeat

.PHONY: test-long
test-long: kube-binaries ## Run what make test leaves out of packages: all kills, rotations, real API servers
	go run ./hack/test long

.PHONY: test-e2e
test-e2e: preflight test-environment ## Run all scenarios in the embedded environment, as root
	go run ./hack/test e2e

.PHONY: test-upgrade
test-upgrade: preflight test-environment ## Upgrade the operator of the last release under clusters in many states, as root
	go run ./hack/test upgrade

.PHONY: test-ha
test-ha: preflight test-environment ## Run the scenarios of highly available clusters, as root
	go run ./hack/test ha

.PHONY: test-rotation
test-rotation: preflight test-environment ## Rotate all signers for an hour (HYPERSHIFT_ROTATION) while clients write, as root
	go run ./hack/test rotation

.PHONY: environment
environment: build kube-binaries os-binaries images ## Build what the embedded environment runs

.PHONY: test-environment
test-environment: upgrade-programs ## Build what tests of the embedded environment run: also the releases that they upgrade from
	$(MAKE) --no-print-directory environment

# Whether this machine can carry the environment is said before the long build.
.PHONY: as-root preflight
as-root:
	@[ "$$(id -u)" = 0 ] || { echo "The embedded environment needs root, to make namespaces and mounts: run it with sudo" >&2; exit 1; }
preflight: as-root devcluster os-commands
	$(BIN)/devcluster preflight

.PHONY: demo
demo: as-root ## Bring up a hosted cluster on MAAS on this machine, show it, leave it running
	@go run ./hack/steps -log $(BIN)/logs/demo.log \
		'Debian packages;os-commands;about 30 s' \
		'Check of this machine;preflight;about 2 min' \
		'Operating systems for the machines;os-binaries cloud-os;about 30 s' \
		'HyperShift;build;about 2 min' \
		'Kubernetes $(KUBE_VERSION);kube-binaries;about 5 min' \
		'CoreDNS, Cluster API and Ignition;$(IMAGE_BINARIES) ignition-binary;about 1 min' \
		'Container images;environment;about 20 s'
	@$(BIN)/hypershift-demo up

.PHONY: demo-down
demo-down: ## Remove every trace of the demo
	@[ -x $(BIN)/devcluster ] || $(MAKE) devcluster
	$(BIN)/devcluster down

# How long a settled provider of 1,000 machines is watched.
export BENCH_SETTLED ?= 5m

.PHONY: bench
bench: kube-binaries $(if $(filter 0,$(shell id -u)),test-environment) ## Measure: Go benchmarks of every package; as root also what a hosted cluster costs in the embedded environment
	go test -timeout 40m -run '^$$' -bench . -benchtime 1x ./...

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN) dist
