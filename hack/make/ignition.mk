# Ignition's own program, which configures the machines of the embedded environment. It is built from its Go module; the
# development files of libblkid are unpacked into bin/, not installed, where the host lacks them.

IGNITION_DIR := test/ignition
IGNITION_VERSION = $(shell awk '$$1 == "github.com/coreos/ignition/v2" { print $$2; exit }' $(IGNITION_DIR)/go.mod)
ignition_package := github.com/coreos/ignition/v2/internal
# It runs only with a version, and relabels for SELinux unless told that there is none.
IGNITION_LDFLAGS = -s -w -X $(ignition_package)/version.Raw=$(IGNITION_VERSION) \
	-X $(ignition_package)/distro.selinuxRelabel=false
BLKID := $(BIN)/blkid
BLKID_HEADER := $(firstword $(wildcard /usr/include/blkid/blkid.h) $(BLKID)/usr/include/blkid/blkid.h)

.PHONY: ignition-binary
ignition-binary: $(BIN)/ignition ## Build Ignition, which configures machines, into bin/

$(BIN)/ignition: $(IGNITION_DIR)/go.mod $(IGNITION_DIR)/go.sum | $(BLKID_HEADER)
	CGO_ENABLED=1 CGO_CFLAGS="-I$(BLKID)/usr/include" CGO_LDFLAGS="$$(printf -- '-L%s ' $(BLKID)/usr/lib/*-linux-gnu)" \
		hack/cached $@ '$(IGNITION_LDFLAGS)' $^ -- go -C $(IGNITION_DIR) build -trimpath -ldflags '$(IGNITION_LDFLAGS)' -o $@ $(ignition_package)

# The .so of the package is a link to the installed library, which may be of another version: the static one is linked.
$(BLKID)/usr/include/blkid/blkid.h:
	rm -rf $(BLKID) && mkdir -p $(BLKID)
	cd $(BLKID) && download='apt-get -q -o APT::Sandbox::User=root download libblkid-dev'; \
		$$download || { apt-get update -q && $$download; }
	cd $(BLKID) && dpkg -x libblkid-dev_*.deb .
	rm -f $(BLKID)/usr/lib/*/libblkid.so

# Node configurations may change partitions with it.
OS_COMMANDS += sgdisk:gdisk

environment: ignition-binary
