# What `make verify` looks at besides generated files.

# Every Go module of the tree.
MODULES = $(patsubst %/go.mod,%,$(shell git ls-files '*go.mod'))
SCRIPTS = $(shell git grep -lE '^\#!.*\b(ba)?sh\b' -- ':!*.go' ':!*.md' ':!**/testdata/**')

.PHONY: verify-modules
verify-modules: ## Check that every go.mod is tidy, and that the module can be packaged
	@for module in $(MODULES:go.mod=.); do (cd $$module && go mod tidy -diff) || { echo "$$module: run go mod tidy" >&2; exit 1; }; done
	git ls-files -z | go run ./hack/modulefiles

.PHONY: verify-constants
verify-constants: ## Check that names which cross packages are written once
	git ls-files -z '*.go' | go run ./hack/constants

# SC1083: some are templates, with {{ .Fields }} in them. SC1091: what they read is made on the node. Neither can be said in the files:
# what nodes get of them must not change with it.
.PHONY: verify-scripts
verify-scripts: $(BIN)/shellcheck ## Check shell scripts, those of nodes too
	$< --exclude=SC1083,SC1091 $(SCRIPTS)

# A Debian package that is unpacked, never installed.
$(BIN)/shellcheck:
	rm -rf $@.package && mkdir -p $@.package
	cd $@.package && download='apt-get -q -o APT::Sandbox::User=root download shellcheck'; \
		$$download || { apt-get update -q && $$download; }
	cd $@.package && dpkg -x shellcheck_*.deb .
	mv $@.package/usr/bin/shellcheck $@
	rm -rf $@.package

# Not part of verify before every file has the line: `make licences` writes it.
.PHONY: licences verify-licences
licences: ## Write the licence's line into every Go file
	git ls-files -z '*.go' | go run ./hack/licences -write
verify-licences: ## Check that every Go file names its licence
	git ls-files -z '*.go' | go run ./hack/licences
