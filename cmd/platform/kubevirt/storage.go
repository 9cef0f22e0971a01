// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const (
	storageFlag  = "infra-storage-class-mapping"
	snapshotFlag = "infra-volumesnapshot-class-mapping"
)

// mappings maps storage and snapshot classes of the cluster that runs the virtual machines to classes of the hosted
// cluster.
type mappings struct {
	storageTexts, snapshotTexts []string
	storage, snapshots          []mapping
}

type mapping struct{ infra, guest, group string }

func (m *mappings) addFlags(flags *pflag.FlagSet) {
	const form = " as <infra class>/<guest class>, with ,group=<name> behind it to keep storage and snapshot classes together; may be repeated"
	flags.StringArrayVar(&m.storageTexts, storageFlag, nil, "StorageClass that the hosted cluster gets,"+form)
	flags.StringArrayVar(&m.snapshotTexts, snapshotFlag, nil, "VolumeSnapshotClass that the hosted cluster gets,"+form)
}

func (m *mappings) complete() error {
	var err error
	if m.storage, err = parseMappings(storageFlag, m.storageTexts); err != nil {
		return err
	}
	m.snapshots, err = parseMappings(snapshotFlag, m.snapshotTexts)
	return err
}

func parseMappings(flag string, texts []string) ([]mapping, error) {
	var parsed []mapping
	for _, text := range texts {
		classes, group, grouped := strings.Cut(text, ",")
		infra, guest, paired := strings.Cut(classes, "/")
		name, known := strings.CutPrefix(strings.TrimSpace(group), "group=")
		if !paired || infra == "" || guest == "" || strings.Contains(guest, "/") || grouped && (!known || name == "") {
			return nil, fmt.Errorf("--%s %q: write it as in ceph-rbd/fast or ceph-rbd/fast,group=ceph", flag, text)
		}
		if !grouped {
			name = ""
		}
		parsed = append(parsed, mapping{infra: infra, guest: guest, group: name})
	}
	return parsed, nil
}

// driver returns the storage driver; nil if no class is mapped, in which case the payload maps the default class.
func (m *mappings) driver() *hyperv1.KubevirtStorageDriverSpec {
	if len(m.storage)+len(m.snapshots) == 0 {
		return nil
	}
	manual := &hyperv1.KubevirtManualStorageDriverConfig{}
	for _, c := range m.storage {
		manual.StorageClassMapping = append(manual.StorageClassMapping,
			hyperv1.KubevirtStorageClassMapping{InfraStorageClassName: c.infra, GuestStorageClassName: c.guest, Group: c.group})
	}
	for _, c := range m.snapshots {
		manual.VolumeSnapshotClassMapping = append(manual.VolumeSnapshotClassMapping,
			hyperv1.KubevirtVolumeSnapshotClassMapping{InfraVolumeSnapshotClassName: c.infra, GuestVolumeSnapshotClassName: c.guest, Group: c.group})
	}
	return &hyperv1.KubevirtStorageDriverSpec{Type: hyperv1.ManualKubevirtStorageDriverConfigType, Manual: manual}
}
