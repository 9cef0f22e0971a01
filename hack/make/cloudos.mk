# The operating system of machines that MAAS deploys its own images to (ubuntu/*): the distribution's packages, cloud-init
# first among them, unpacked into a folder and never installed.

.PHONY: cloud-os
cloud-os: $(BIN)/cloud-os/usr/bin/cloud-init ## Unpack the operating system of cloud images into bin/cloud-os

$(BIN)/cloud-os/usr/bin/cloud-init: hack/cloud-os | os-commands
	hack/cached $(BIN)/cloud-os packages hack/cloud-os /etc/os-release -- hack/cloud-os $(BIN)/cloud-os
	touch $@

environment: cloud-os
