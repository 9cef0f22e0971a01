# The product's image. It needs no container engine: Go builds for each architecture, and hack/image packs.

# IMAGE is where the image is pushed to; the CLI in it, and the one in dist/image/programs, install that image.
IMAGE ?=
IMAGE_ARCHS ?= amd64 arm64
IMAGE_DIR := $(CURDIR)/dist/image

# What the image holds for node-network to install on nodes.
CNI_PLUGINS := main/bridge main/loopback main/ptp meta/portmap ipam/host-local

.PHONY: product
product: $(PRODUCT) $(BIN)/cni/ptp

$(BIN)/cni/ptp: $(addprefix test/devcluster/cni/,go.mod go.sum)
	hack/cached $(BIN)/cni "static $(CNI_PLUGINS) $$(go env GOOS)" $^ -- \
		go -C test/devcluster/cni build $(STATIC_FLAGS) -o $(BIN)/cni/ $(addprefix github.com/containernetworking/plugins/plugins/,$(CNI_PLUGINS))
	touch $@

.PHONY: image
image: ## Make the product's image for IMAGE_ARCHS, with its bills of materials, as an OCI layout in dist/image/oci
	for arch in $(IMAGE_ARCHS); do \
		GOOS=linux GOARCH=$$arch $(MAKE) --no-print-directory BIN=$(IMAGE_DIR)/programs/$$arch VERSION='$(VERSION)' HYPERSHIFT_IMAGE='$(IMAGE)' product && \
		$(MAKE) --no-print-directory BIN=$(IMAGE_DIR)/programs/$$arch VERSION='$(VERSION)' NODE_AGENT_ARCHS='amd64 arm64' node-agent; \
	done
	go run ./hack/image build --programs $(IMAGE_DIR)/programs --to $(IMAGE_DIR)/oci $(addprefix --arch ,$(IMAGE_ARCHS)) \
		--version '$(VERSION)' --revision "$$(git rev-parse HEAD)" --created "$$(git log -1 --format=%ct)"

.PHONY: image-push
image-push: ## Make the image and push it to IMAGE, such as registry.example.com/hypershift:v1
	@[ -n '$(IMAGE)' ] || { echo "IMAGE is missing: make image-push IMAGE=registry.example.com/hypershift:v1" >&2; exit 2; }
	$(MAKE) --no-print-directory image
	go run ./hack/image push --from $(IMAGE_DIR)/oci '$(IMAGE)'
