# A takeover for real, but for the installer: a machine that QEMU emulates, with a kernel of Debian's, busybox and kexec. They are unpacked
# into bin/; QEMU alone is installed.
TAKEOVER_OS := $(BIN)/takeover-os

.PHONY: test-takeover
test-takeover: node-agent $(TAKEOVER_OS)/sbin/kexec ## Emulate a machine (amd64) that prepares its takeover and starts the other kernel, as root
	[ "$$(go env GOARCH)" = amd64 ] || { echo "test-takeover emulates an amd64 machine, and this one is $$(go env GOARCH)" >&2; exit 1; }
	command -v qemu-system-x86_64 >/dev/null || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends qemu-system-x86; }
	TAKEOVER_OS=$(TAKEOVER_OS) TAKEOVER_NODE_AGENT=$(BIN)/node-agent/amd64 go run ./hack/test takeover

# The package linux-image-cloud-amd64 only names the kernel of the day.
$(TAKEOVER_OS)/sbin/kexec:
	rm -rf $(TAKEOVER_OS) && mkdir -p $(TAKEOVER_OS)/packages
	cd $(TAKEOVER_OS)/packages && \
		download='apt-get -q -o APT::Sandbox::User=root download busybox-static kexec-tools'; \
		kernel() { apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ {print $$2; exit}'; }; \
		libraries() { apt-cache depends --recurse --important kexec-tools | grep -E '^lib(xen|yajl)' | sort -u; }; \
		$$download $$(kernel) $$(libraries) || { apt-get update -q && $$download $$(kernel) $$(libraries); }
	for package in $(TAKEOVER_OS)/packages/*.deb; do dpkg -x $$package $(TAKEOVER_OS); done
	rm -rf $(TAKEOVER_OS)/packages $(TAKEOVER_OS)/lib/modules $(TAKEOVER_OS)/usr/share
	touch $@
