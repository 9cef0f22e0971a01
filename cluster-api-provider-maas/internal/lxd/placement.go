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

// PlacementAnnotation holds, as JSON, the placement of the virtual machine of a MaasMachine. It is written before MAAS
// is called, so that a restart loses neither the reservation nor the virtual machine.
const PlacementAnnotation = "infrastructure.cluster.x-k8s.io/lxd-placement"

// Placement is a reservation on a host, and the virtual machine there once it is known.
type Placement struct {
	Host    string `json:"host"`
	HostID  int    `json:"hostID"`
	Zone    string `json:"zone"`
	Project string `json:"project,omitempty"`
	// Hostname is the host name of the virtual machine.
	Hostname  string `json:"hostname"`
	Cores     int    `json:"cores"`
	MemoryMiB int    `json:"memoryMiB"`
	DiskGB    int    `json:"diskGB"`
	// Store is the storage pool; empty if MAAS chooses it.
	Store string `json:"store,omitempty"`
	// At is when MAAS was called. Composed is when it had answered: host data that MAAS reports later includes the virtual
	// machine.
	At       time.Time `json:"at"`
	Composed time.Time `json:"composed,omitzero"`
	SystemID string    `json:"systemID,omitempty"`
}

// PlacementOf reads the annotation; nil if it is missing or invalid.
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

// reportedAt reports whether host data from the given time includes the virtual machine.
func (p Placement) reportedAt(asOf time.Time) bool {
	return !p.Composed.IsZero() && p.Composed.Before(asOf)
}

// Hostname returns the host name of the virtual machine of an attempt; the first attempt is 0. Host names are unique in
// MAAS, so an attempt never creates two. The name contains the UID of the MaasMachine and a hash of the UID of the
// MaasCluster, which may be empty.
//
// The name is the only link to the MaasMachine: MAAS does not keep other data on a machine that is not allocated. It
// identifies a virtual machine whose MaasMachine was removed by force.
func Hostname(uid, cluster string, try int) string {
	name := "vm-" + uid + mark(cluster)
	if try == 0 {
		return name
	}
	return name + "-" + strconv.Itoa(try+1)
}

// mark returns a short hash, since a host name has at most 63 characters. It cannot be confused with the number of an
// attempt.
func mark(cluster string) string {
	if cluster == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(cluster))
	return "-c" + hex.EncodeToString(sum[:4])
}

var hostname = regexp.MustCompile(`^vm-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(-c[0-9a-f]{8})?(-[0-9]+)?$`)

// UIDOf returns the MaasMachine UID in the name of a virtual machine; empty for any other name.
func UIDOf(name string) string {
	parts := hostname.FindStringSubmatch(name)
	if parts == nil {
		return ""
	}
	return parts[1]
}

// MadeFor reports whether a name belongs to a virtual machine of the MaasCluster with the given UID.
func MadeFor(name, cluster string) bool {
	parts := hostname.FindStringSubmatch(name)
	return parts != nil && cluster != "" && parts[2] == mark(cluster)
}
