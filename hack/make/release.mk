# What clusterctl installs the MAAS provider from.

RELEASE_VERSION ?= v0.1.0
RELEASE_IMAGE ?= hypershift:$(VERSION)

.PHONY: release-manifests
release-manifests: ## Write metadata.yaml, infrastructure-components.yaml and the cluster template into dist/
	go run ./cluster-api-provider-maas/release --version $(RELEASE_VERSION) --image $(RELEASE_IMAGE) --output dist
