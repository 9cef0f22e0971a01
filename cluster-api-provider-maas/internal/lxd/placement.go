// SPDX-License-Identifier: Apache-2.0

package lxd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
)

// PlacementAnnotation holds, as JSON, where the virtual machine of a MaasMachine is made. It is written before MAAS is asked, so that a
// restart neither forgets what is reserved nor loses what was made.
const PlacementAnnotation = "infrastructure.cluster.x-k8s.io/lxd-placement"

// Placement is a place on a host, and the virtual machine there as soon as it is known.
type Placement struct {
	Host    string `json:"host"`
	HostID  int    `json:"hostID"`
	Zone    string `json:"zone"`
	Project string `json:"project,omitempty"`
	// Hostname is that of the virtual machine.
	Hostname  string `json:"hostname"`
	Cores     int    `json:"cores"`
	MemoryMiB int    `json:"memoryMiB"`
	DiskGB    int    `json:"diskGB"`
	// Store is the storage pool; empty where MAAS chooses.
	Store string `json:"store,omitempty"`
	// At is when MAAS was asked, Composed when it had answered: what it reports of the host from then on includes the machine.
	At       time.Time `json:"at"`
	Composed time.Time `json:"composed,omitzero"`
	SystemID string    `json:"systemID,omitempty"`
}

// PlacementOf reads the annotation; nil when there is none, or a person broke it.
func PlacementOf(m *infrav1.MaasMachine) *Placement {
	p := &Placement{}
	if json.Unmarshal([]byte(m.Annotations[PlacementAnnotation]), p) != nil || p.Hostname == "" {
		return nil
	}
	return p
}

// SetPlacement writes the annotation.
func SetPlacement(m *infrav1.MaasMachine, p Placement) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encoding the place of MaasMachine %s: %w", client.ObjectKeyFromObject(m), err)
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[PlacementAnnotation] = string(text)
	return nil
}

func (p Placement) size() Size {
	return Size{Cores: p.Cores, MemoryMiB: p.MemoryMiB, DiskBytes: int64(p.DiskGB) * bytesPerGB}
}

// reportedAt tells that what MAAS said of its hosts at a time includes the virtual machine.
func (p Placement) reportedAt(asOf time.Time) bool {
	return !p.Composed.IsZero() && p.Composed.Before(asOf)
}

// Hostname is that of the virtual machine of a try, the first of which is 0. MAAS has each name once, so that no try makes two. It names the
// MaasMachine by its UID, and marks the MaasCluster, which may be empty: MAAS keeps no word of ours on a machine that nobody has allocated, and
// one whose MaasMachine was removed by force is found by its name alone.
func Hostname(uid, cluster string, try int) string {
	name := "vm-" + uid + mark(cluster)
	if try == 0 {
		return name
	}
	return name + "-" + strconv.Itoa(try+1)
}

// mark is short, since a host name has 63 characters at most, and does not look like the number of a try.
func mark(cluster string) string {
	if cluster == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(cluster))
	return "-c" + hex.EncodeToString(sum[:4])
}

var hostname = regexp.MustCompile(`^vm-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(-c[0-9a-f]{8})?(-[0-9]+)?$`)

// UIDOf is the UID of the MaasMachine in the name of a virtual machine; empty in a name of another kind.
func UIDOf(name string) string {
	parts := hostname.FindStringSubmatch(name)
	if parts == nil {
		return ""
	}
	return parts[1]
}

// MadeFor tells that a name is that of a virtual machine of a MaasCluster, by its UID.
func MadeFor(name, cluster string) bool {
	parts := hostname.FindStringSubmatch(name)
	return parts != nil && cluster != "" && parts[2] == mark(cluster)
}
