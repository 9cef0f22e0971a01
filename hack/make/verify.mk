# What `make verify` looks at besides generated files.

# Every Go module of the tree.
MODULES = $(patsubst %/go.mod,%,$(shell git ls-files '*go.mod'))
SCRIPTS = $(shell git grep -lE '^\#!.*\b(ba)?sh\b' -- ':!*.go' ':!*.md' ':!**/testdata/**')

.PHONY: verify-modules
verify-modules: ## Check that every go.mod is tidy, and that the module can be packaged
	@for module in $(MODULES:go.mod=.); do (cd $$module && go mod tidy -diff) || { echo "$$module: run go mod tidy" >&2; exit 1; }; done
	git ls-files -z | go run ./hack/modulefiles

.PHONY: verify-suites
verify-suites: ## Check that the nightly workflow runs every suite of `make test-all`
	@diff <(printf '%s\n' $(SUITES)) <(sed -n -e '/^ *suite:$$/,/^ *runs-on:/ s/^ *- //p' \
		-e 's/.* make \(test-[a-z]*\) .*/\1/p' .github/workflows/nightly.yaml) \
		|| { echo "the suites of the Makefile and of .github/workflows/nightly.yaml differ" >&2; exit 1; }

.PHONY: verify-constants
verify-constants: ## Check that names which cross packages are written once
	git ls-files -z '*.go' | go run ./hack/constants

# SC1083: some are templates, with {{ .Fields }} in them. SC1091: what they read is made on the node. Neither can be said in the files:
# what nodes get of them must not change with it.
.PHONY: verify-versions
verify-versions: ## Check that nothing below the table of lowest versions is shipped
	go run ./hack/lowestversions go.mod api/go.mod

.PHONY: verify-scripts
verify-scripts: $(BIN)/shellcheck ## Check shell scripts, those of nodes too
	$< --exclude=SC1083,SC1091 $(SCRIPTS)

# The prose linter. The parsers of languages that it links are C.
$(BIN)/vale: $(addprefix hack/style/,go.mod go.sum)
	CGO_ENABLED=1 hack/cached $@ static $^ -- go -C hack/style build $(STATIC_FLAGS) -o $@ github.com/vale-cli/vale/v3/cmd/vale

.PHONY: verify-sources
verify-sources: ## Run the tests that read all source files
	go test -vet=off -run 'TestNoPlatformOutsideThePlugins|TestEventsHaveOneWriter|TestEveryConstantHasARow|TestTableIsDocumented' \
		./hypershift-operator/platform/registry ./support/logging ./support/protected

# The string literals of Go files are linted as texts, in which they have the lines of their files.
.PHONY: verify-prose
verify-prose: $(BIN)/vale ## Check the words of comments, messages and pages with the rules of hack/style
	git ls-files -z '*.go' | go run ./hack/messages $(BIN)/messages
	$< --config hack/style/vale.ini --output line $$(git ls-files '*.go' '*.md') $(BIN)/messages \
		| sed -e 's|^$(BIN)/messages/\(.*\)\.txt:|\1:|'

GOVULNCHECK_VERSION := v1.9.0
# The vulnerability database is a Go module. The version is fixed, so that a vulnerability that becomes known overnight
# fails no change that has nothing to do with it. A release raises it with `make vulnerability-database`.
VULNDB_VERSION := v0.0.0-20261105234957-e22db6528018

$(BIN)/govulncheck-$(GOVULNCHECK_VERSION):
	hack/cached $@ $(GOVULNCHECK_VERSION) -- bash -ec 'GOBIN=$(BIN) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) && mv $(BIN)/govulncheck $@'

# Where no Go proxy is reached, the check is skipped, and says so.
.PHONY: verify-vulnerabilities vulnerability-database
verify-vulnerabilities: $(BIN)/govulncheck-$(GOVULNCHECK_VERSION) ## Look for known vulnerabilities in what our programs link
	@[ -x $(BIN)/control-plane-operator ] || $(MAKE) --no-print-directory product node-agent
	@folder=$$(go mod download -json golang.org/x/vulndb@$(VULNDB_VERSION) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); \
	if [ -z "$$folder" ]; then \
		echo "verify-vulnerabilities: skipped, since golang.org/x/vulndb cannot be downloaded"; \
	else \
		go run ./hack/vulnerabilities -govulncheck $< -db "file://$$folder/data/osv" \
			-accepted hack/vulnerabilities/accepted.yaml $(addprefix $(BIN)/,$(PRODUCT)) $(BIN)/node-agent/*; \
	fi
vulnerability-database: ## Take the latest vulnerability database and look for what became known, as before a release
	latest=$$(go list -m -f '{{.Version}}' golang.org/x/vulndb@latest) && \
		sed -i "s/^VULNDB_VERSION := .*/VULNDB_VERSION := $$latest/" hack/make/verify.mk
	$(MAKE) --no-print-directory verify-vulnerabilities

# A Debian package that is unpacked, never installed.
$(BIN)/shellcheck:
	hack/cached $@ package /etc/os-release -- $(MAKE) --no-print-directory unpack-shellcheck

.PHONY: unpack-shellcheck
unpack-shellcheck: private target := $(BIN)/shellcheck
unpack-shellcheck:
	rm -rf $(target).package && mkdir -p $(target).package
	cd $(target).package && download='apt-get -q -o APT::Sandbox::User=root download shellcheck'; \
		$$download || { apt-get update -q && $$download; }
	cd $(target).package && dpkg -x shellcheck_*.deb .
	mv $(target).package/usr/bin/shellcheck $(target)
	rm -rf $(target).package

# `make licences` writes the line where it is missing.
.PHONY: licences verify-licences
licences: ## Write the licence's line into every Go file
	git ls-files -z '*.go' | go run ./hack/licences -write
verify-licences: ## Check that every Go file names its licence
	git ls-files -z '*.go' | go run ./hack/licences
