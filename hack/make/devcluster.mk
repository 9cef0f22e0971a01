# The binaries and images that the embedded environment runs. Each part that is not ours is a Go module of its own
# (pinned, so that the product's go.mod stays clean) or a Debian package that is unpacked, never installed: a containerd
# or Docker that is already on the host is not touched.

KUBE_DIR := test/devcluster/kube
KUBE_PROGRAMS := kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl etcd
KUBE_VERSION := $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2; exit }' $(KUBE_DIR)/go.mod)
version_package := k8s.io/component-base/version
# kube_ldflags stamps a version, such as v1.36.3, into a program of Kubernetes.
kube_ldflags = -s -w \
	-X $(version_package).gitVersion=$(1) \
	-X $(version_package).gitMajor=$(word 1,$(subst ., ,$(1:v%=%))) \
	-X $(version_package).gitMinor=$(word 2,$(subst ., ,$(1:v%=%))) \
	-X $(version_package).gitTreeState=clean

.PHONY: kube-binaries
kube-binaries: $(addprefix $(BIN)/kube/,$(KUBE_PROGRAMS)) ## Build kube-apiserver, etcd, kubectl and the rest into bin/kube/

# Go would take half a minute just to find out that nothing changed, so make decides by the module's own files.
KUBE_SOURCES := $(addprefix $(KUBE_DIR)/,main.go go.mod go.sum)
# build_kube builds the program that $@ names, as the version $(1).
build_kube = hack/cached $@ '$(1)' $(KUBE_SOURCES) -- \
	go -C $(KUBE_DIR) build -trimpath -ldflags '$(call kube_ldflags,$(1))' -o $@ .

$(BIN)/kube/kube: $(KUBE_SOURCES)
	CGO_ENABLED=0 $(call build_kube,$(KUBE_VERSION))

$(addprefix $(BIN)/kube/,$(KUBE_PROGRAMS)): | $(BIN)/kube/kube
	ln -sf kube $@

# What an upgrade by a minor starts from, and what one by a patch goes to: the same sources, which call themselves the first and the second
# release of the minor before (and take its feature gates for their own), so that each costs a link and not another build of Kubernetes.
KUBE_MINOR := $(word 2,$(subst ., ,$(KUBE_VERSION)))
KUBE_PREVIOUS_MINOR := v1.$(shell expr $(KUBE_MINOR) - 1)
stamp/previous := $(KUBE_PREVIOUS_MINOR).0
stamp/patch := $(KUBE_PREVIOUS_MINOR).1
KUBE_STAMPED := $(addprefix $(BIN)/kube-,$(addsuffix /kube,previous patch))

$(KUBE_STAMPED): $(BIN)/kube-%/kube: $(BIN)/kube/kube
	CGO_ENABLED=0 $(call build_kube,$(stamp/$*))
	ln -sf kube $(@D)/kubelet

.PHONY: upgrade-programs
upgrade-programs: $(KUBE_STAMPED) $(addprefix $(BIN)/node/,kubelet-previous kubelet-patch)

# The object store of the environment. It is small, and devcluster does not start without it.
build: $(BIN)/s3
$(BIN)/s3: $(addprefix test/devcluster/s3/,main.go go.mod go.sum)
	hack/cached $@ static $^ -- go -C test/devcluster/s3 build $(STATIC_FLAGS) -o $@ .

# What the images hold besides the product's programs.
IMAGE_BINARIES := $(BIN)/images/coredns $(BIN)/images/cluster-api $(BIN)/images/flanneld $(BIN)/images/metrics-server

$(BIN)/images/coredns: $(addprefix test/devcluster/coredns/,main.go go.mod go.sum)
	hack/cached $@ static $^ -- go -C test/devcluster/coredns build $(STATIC_FLAGS) -o $@ .

$(BIN)/images/cluster-api: $(addprefix test/devcluster/clusterapi/,go.mod go.sum)
	hack/cached $@ static $^ -- go -C test/devcluster/clusterapi build $(STATIC_FLAGS) -o $@ sigs.k8s.io/cluster-api

$(BIN)/images/flanneld: $(addprefix test/devcluster/flannel/,main.go go.mod go.sum)
	hack/cached $@ static $^ -- go -C test/devcluster/flannel build $(STATIC_FLAGS) -o $@ .

$(BIN)/images/metrics-server: $(addprefix test/devcluster/metricsserver/,go.mod go.sum)
	hack/cached $@ static $^ -- go -C test/devcluster/metricsserver build $(STATIC_FLAGS) -o $@ \
		sigs.k8s.io/metrics-server/cmd/metrics-server

# What the node images are made of, each with its checksum as publishers have it.
NODE_FILES := $(addprefix $(BIN)/node/,kubelet runc containerd.tgz cni-plugins.tgz)
node_checksum = sha256sum < $@ | cut -d' ' -f1 > $@.sha256
node_archive = tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -czf $@

$(BIN)/node/kubelet: $(BIN)/kube/kube
	mkdir -p $(@D) && ln -f $< $@ && $(node_checksum)

$(BIN)/node/kubelet-%: $(BIN)/kube-%/kube
	mkdir -p $(@D) && ln -f $< $@ && $(node_checksum)

$(BIN)/node/runc: $(BIN)/os/usr/bin/containerd
	mkdir -p $(@D) && cp -L $(BIN)/os/usr/bin/runc $@ && $(node_checksum)

$(BIN)/node/containerd.tgz: $(BIN)/os/usr/bin/containerd
	mkdir -p $(@D) && $(node_archive) -C $(BIN)/os/usr/bin containerd containerd-shim-runc-v2 ctr && $(node_checksum)

$(BIN)/node/cni-plugins.tgz: $(BIN)/cni/ptp
	mkdir -p $(@D) && $(node_archive) -C $(BIN)/cni . && $(node_checksum)

.PHONY: image-programs
image-programs:
	$(STATIC_BUILD) -o $(BIN)/images/ ./test/devcluster/pause ./test/devcluster/web ./test/standin

.PHONY: images
images: product node-agent devcluster kube-binaries image-programs $(IMAGE_BINARIES) $(NODE_FILES) | os-commands ## Build the container images into bin/images/oci
	$(BIN)/devcluster images build

# Programs of the host that the environment runs as they are; "command:package" each. Other files may add to it.
OS_COMMANDS += ip:iproute2 nft:nftables iptables:iptables nsenter:util-linux mount:mount cpio:cpio

.PHONY: os-commands
os-commands:
	@missing=; for pair in $(OS_COMMANDS); do \
		command -v $${pair%%:*} >/dev/null || missing="$$missing $${pair##*:}"; \
	done; \
	[ -z "$$missing" ] || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $$missing; }

.PHONY: os-binaries
os-binaries: $(BIN)/os/usr/bin/containerd | os-commands ## Unpack containerd and runc into bin/os (nothing is installed)

# A machine finds this tree as /opt/os.
OS_PACKAGES := containerd runc libseccomp2
$(BIN)/os/usr/bin/containerd:
	hack/cached $(BIN)/os '$(OS_PACKAGES)' /etc/os-release -- $(MAKE) --no-print-directory unpack-os

.PHONY: unpack-os
unpack-os:
	mkdir -p $(BIN)/os/packages
	cd $(BIN)/os/packages && download='apt-get -q -o APT::Sandbox::User=root download $(OS_PACKAGES)'; \
		$$download || { apt-get update -q && $$download; }
	for package in $(BIN)/os/packages/*.deb; do dpkg -x $$package $(BIN)/os; done
	rm -rf $(BIN)/os/packages $(BIN)/os/etc $(BIN)/os/lib $(BIN)/os/usr/share
	touch $(BIN)/os/usr/bin/containerd
