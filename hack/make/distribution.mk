# What a release publishes besides the image. Each step of .github/workflows/release.yaml is a target of this file or of
# image.mk, and runs anywhere.

DIST := $(CURDIR)/dist
CLI_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
# Further flags of `install` that the chart and install.yaml contain.
INSTALL_FLAGS ?=

.PHONY: release-cli
release-cli: ## Write archives of hypershift and hcp for CLI_PLATFORMS, with checksums, into dist/cli
	rm -rf $(DIST)/cli && mkdir -p $(DIST)/cli
	for platform in $(CLI_PLATFORMS); do \
		os=$${platform%/*} arch=$${platform#*/}; folder=$(DIST)/cli/$$os-$$arch; mkdir -p $$folder; \
		for program in hypershift=./cmd/hypershift hcp=./product-cli; do \
			CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch go build -trimpath -ldflags '$(LDFLAGS)' -o $$folder/$${program%%=*} $${program#*=}; \
		done; \
		cp LICENSE $$folder/; \
		tar -C $$folder --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$$(git log -1 --format=%ct) \
			-cf - hypershift hcp LICENSE | gzip -n > $(DIST)/cli/hypershift-$$os-$$arch.tar.gz; \
		go version -m $$folder/hypershift > $(DIST)/cli/hypershift-$$os-$$arch.modules.txt; \
		rm -r $$folder; \
	done
	cd $(DIST)/cli && sha256sum *.tar.gz | tee SHA256SUMS

.PHONY: release-man
release-man: ## Write the man pages of hypershift and hcp into dist/man
	go run ./cmd/docs -man $(DIST)/man
	@echo "wrote $$(ls $(DIST)/man | wc -l) man pages into dist/man"

# DOWNLOADS is the address of the folder that has the archives of release-cli.
.PHONY: release-krew
release-krew: ## Write the krew manifest of kubectl hypershift into dist, from the archives in dist/cli at DOWNLOADS
	@[ -n '$(DOWNLOADS)' ] || { echo "DOWNLOADS is missing: make release-krew DOWNLOADS=https://example.com/v1" >&2; exit 2; }
	@[ -f $(DIST)/cli/SHA256SUMS ] || { echo "dist/cli is missing: run make release-cli first" >&2; exit 2; }
	@{ printf '%s\n' 'apiVersion: krew.googlecontainertools.github.com/v1alpha2' 'kind: Plugin' 'metadata: {name: hypershift}' \
		'spec:' '  version: $(RELEASE_VERSION)' '  shortDescription: Hosted control planes with workers on MAAS' '  platforms:'; \
	while read -r sum archive; do \
		name=$${archive%.tar.gz} name=$${name#hypershift-}; \
		printf '  - %s\n' "selector: {matchLabels: {os: $${name%-*}, arch: $${name#*-}}}"; \
		printf '    %s\n' "uri: $(DOWNLOADS)/$$archive" "sha256: $$sum" 'bin: hypershift'; \
	done < $(DIST)/cli/SHA256SUMS; } > $(DIST)/krew.yaml
	@echo "wrote dist/krew.yaml"

.PHONY: release-install
release-install: ## Write install.yaml, for IMAGE, into dist
	@[ -n '$(IMAGE)' ] || { echo "IMAGE is missing: make release-install IMAGE=registry.example.com/hypershift:v1" >&2; exit 2; }
	mkdir -p $(DIST)
	go run ./cmd/hypershift install render --hypershift-image '$(IMAGE)' $(INSTALL_FLAGS) --output-file $(DIST)/install.yaml
	@echo "wrote dist/install.yaml"

.PHONY: chart
chart: ## Write the Helm chart into dist/chart/hypershift, from what install renders
	go run ./cmd/chart -version '$(RELEASE_VERSION)' -to $(DIST)/chart/hypershift -- $(INSTALL_FLAGS)
	@echo "wrote dist/chart/hypershift"

.PHONY: test-chart
test-chart: ## Check with Helm that the chart equals what install renders
	go -C hack/helm test -vet=off -count=1 ./...

.PHONY: test-console
test-console: ## Check the page of `hypershift console` in headless Chromium (PICTURE=1 writes its picture for the docs)
	go -C test/browser build -o $(abspath $(BIN))/console-browser .
	HYPERSHIFT_BROWSER=$(abspath $(BIN))/console-browser HYPERSHIFT_PICTURE=$(PICTURE) go test -vet=off -count=1 -v -run TestBrowser ./cmd/console

.PHONY: sign
sign: ## Sign IMAGE with cosign
	@[ -n '$(IMAGE)' ] || { echo "IMAGE is missing: make sign IMAGE=registry.example.com/hypershift:v1" >&2; exit 2; }
	@command -v cosign >/dev/null || { echo "cosign is missing: install it to sign $(IMAGE)" >&2; exit 2; }
	cosign sign --yes '$(IMAGE)'
