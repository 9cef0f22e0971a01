// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// AttemptAnnotation holds the time of an allocation whose outcome is not recorded yet. It is written before the call.
	// After a crash, the next reconcile knows that a machine may have been allocated.
	AttemptAnnotation = "infrastructure.cluster.x-k8s.io/allocation-attempt"
	// UIDAnnotation holds the UID from which the allocation key is built. It is written before the call. It stays when the
	// MaasMachine is moved to another management cluster, where its UID changes.
	UIDAnnotation = "infrastructure.cluster.x-k8s.io/allocation-uid"
	// FailuresAnnotation lists, as JSON, the machines on which the deployment of this MaasMachine failed.
	FailuresAnnotation = "infrastructure.cluster.x-k8s.io/failed-machines"
)

// failure is a machine on which the deployment of a MaasMachine failed.
type failure struct {
	SystemID string    `json:"systemID"`
	Hostname string    `json:"hostname"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
	// Host is the LXD host of a virtual machine; empty for bare metal.
	Host string `json:"host,omitempty"`
	// Words is the message from MAAS.
	Words string `json:"words,omitempty"`
	// Released is true when MAAS has released the machine.
	Released bool `json:"released,omitempty"`
	// Address is the static address that the machine still has while it is released in the background.
	Address *address `json:"address,omitempty"`
}

// failuresOf reads the annotation. An invalid annotation counts as empty.
func failuresOf(m *infrav1.MaasMachine) []failure {
	var failures []failure
	if json.Unmarshal([]byte(m.Annotations[FailuresAnnotation]), &failures) != nil {
		return nil
	}
	return failures
}

func setFailures(m *infrav1.MaasMachine, failures []failure) error {
	text, err := json.Marshal(failures)
	if err != nil {
		return fmt.Errorf("encoding the failures of MaasMachine %s: %w", client.ObjectKeyFromObject(m), err)
	}
	annotate(m, FailuresAnnotation, string(text))
	return nil
}

// attemptedAt returns the time of an allocation with an unknown outcome; zero when there is none.
func attemptedAt(m *infrav1.MaasMachine) time.Time {
	at, err := time.Parse(time.RFC3339Nano, m.Annotations[AttemptAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// AllocationUID returns the UID from which the allocation key of a MaasMachine is built.
func AllocationUID(m *infrav1.MaasMachine) string {
	if uid := m.Annotations[UIDAnnotation]; uid != "" {
		return uid
	}
	return string(m.UID)
}

// write patches the MaasMachine at the resource version that this reconcile read. Another provider instance, in a pod
// on a lost node, may have recorded another machine since. The findings of this reconcile are then about the previous
// machine, so the write fails with a conflict. The next reconcile starts from the current object.
func (r *Reconciler) write(ctx context.Context, s *scope, mutate func() error) error {
	var shapeErr error
	err := upsert.PatchLatest(ctx, r.Client, s.machine, func() { shapeErr = mutate() })
	return errors.Join(err, shapeErr)
}

func annotate(m *infrav1.MaasMachine, key, value string) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[key] = value
}
