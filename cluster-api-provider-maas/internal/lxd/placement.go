package lxd

import (
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

// Hostname is that of the virtual machine of a try, the first of which is 0. MAAS has each name once, so that no try makes two.
func Hostname(uid string, try int) string {
	if try == 0 {
		return "vm-" + uid
	}
	return "vm-" + uid + "-" + strconv.Itoa(try+1)
}

var hostname = regexp.MustCompile(`^vm-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(-[0-9]+)?$`)

// UIDOf is the UID in the name of a virtual machine; empty in a name of another kind.
func UIDOf(name string) string {
	parts := hostname.FindStringSubmatch(name)
	if parts == nil {
		return ""
	}
	return parts[1]
}
