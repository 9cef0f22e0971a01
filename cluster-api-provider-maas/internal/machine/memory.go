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
	// AttemptAnnotation holds the time of an allocation whose outcome is not written down yet. It is written before the
	// call, so that whoever comes after a crash knows that an answer may be under way.
	AttemptAnnotation = "infrastructure.cluster.x-k8s.io/allocation-attempt"
	// UIDAnnotation holds the UID that the allocation's key is made of. It is written before the call, and stays when the
	// MaasMachine is moved to another management cluster, where it gets another UID.
	UIDAnnotation = "infrastructure.cluster.x-k8s.io/allocation-uid"
	// FailuresAnnotation lists, as JSON, the machines on which this MaasMachine could not be deployed.
	FailuresAnnotation = "infrastructure.cluster.x-k8s.io/failed-machines"
)

// failure is a machine that a MaasMachine could not be deployed on.
type failure struct {
	SystemID string    `json:"systemID"`
	Hostname string    `json:"hostname"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
	// Host is where the machine was, if it was a virtual one.
	Host string `json:"host,omitempty"`
	// Words are what MAAS said.
	Words string `json:"words,omitempty"`
	// Released is set when MAAS has the machine back.
	Released bool `json:"released,omitempty"`
	// Address is the static address that the machine still has while it is given back in the background.
	Address *address `json:"address,omitempty"`
}

// failuresOf reads the annotation; one that a person broke counts as none.
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

// attemptedAt is the time of an allocation in doubt; zero when there is none.
func attemptedAt(m *infrav1.MaasMachine) time.Time {
	at, err := time.Parse(time.RFC3339Nano, m.Annotations[AttemptAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// AllocationUID is what the key of a MaasMachine's allocation is made of.
func AllocationUID(m *infrav1.MaasMachine) string {
	if uid := m.Annotations[UIDAnnotation]; uid != "" {
		return uid
	}
	return string(m.UID)
}

// write changes the MaasMachine as this pass read it. Another provider, in a pod that a lost node still runs, may have given it another
// machine since: what this pass knows is about the former one then, the write is a conflict, and the next pass begins with what is there.
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
