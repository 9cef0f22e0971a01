# A walk against a real MAAS. It looks, says what it would take, and takes that with CONFIRM=yes only; all of it is given back.

.PHONY: test-maas
test-maas: ## Try what we need of a real MAAS: MAAS_ENDPOINT=... MAAS_API_KEY_FILE=... [CONFIRM=yes]
	@MAAS_ENDPOINT='$(MAAS_ENDPOINT)' MAAS_API_KEY_FILE='$(MAAS_API_KEY_FILE)' MAAS_CA_BUNDLE_FILE='$(MAAS_CA_BUNDLE_FILE)' \
		MAAS_POOL='$(MAAS_POOL)' MAAS_ZONE='$(MAAS_ZONE)' MAAS_IMAGE='$(MAAS_IMAGE)' CONFIRM='$(CONFIRM)' go run ./test/maas-check
