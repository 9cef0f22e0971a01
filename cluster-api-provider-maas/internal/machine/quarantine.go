// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/upsert"
)

// setAside keeps the machine on which a deployment failed from being allocated again soon. It does so for this process
// and, through a record on the MaasCluster, for later ones.
func (r *Reconciler) setAside(ctx context.Context, s *scope) error {
	id, now := s.systemID(), r.Clock.Now().UTC()
	s.identity.SetAside.Add(id, now.Add(r.Timing.SetAside))
	if s.infra == nil || s.observed != nil && s.composed(s.observed) {
		return nil // A virtual machine is not reused.
	}
	record := quarantine.Records.Of(s.infra)[id]
	by := fmt.Sprintf("%s/%d", s.uid(), len(failuresOf(s.machine))+1)
	if record.By == by {
		return nil
	}
	record.Failures, record.Last, record.By, record.Image = record.Failures+1, now, by, s.machine.Spec.Image
	if s.observed != nil {
		record.Hostname = s.observed.Hostname
	}
	var encodeErr error
	err := upsert.Patch(ctx, r.Client, s.infra, func() { encodeErr = quarantine.Records.Set(s.infra, id, record) })
	return errors.Join(err, encodeErr)
}

// excludeFailed sets aside the machines that failed recently, for this MaasMachine or another MaasMachine of the cluster. It
// also records the quarantined machines.
func (r *Reconciler) excludeFailed(s *scope) {
	for _, f := range failuresOf(s.machine) {
		s.identity.SetAside.Add(f.SystemID, f.At.Add(r.Timing.SetAside))
	}
	s.quarantined = map[string]bool{}
	for id, record := range quarantine.Records.Of(s.infra) {
		s.identity.SetAside.Add(id, record.Last.Add(r.Timing.SetAside))
		s.quarantined[id] = record.Quarantined && !record.Shared
	}
}

// wellAgain removes the failures of a machine that runs now, unless it is quarantined.
func (r *Reconciler) wellAgain(ctx context.Context, s *scope) error {
	record, failed := quarantine.Records.Of(s.infra)[s.systemID()]
	if !failed || record.Quarantined {
		return nil
	}
	return upsert.Patch(ctx, r.Client, s.infra, func() { quarantine.Records.Remove(s.infra, s.systemID()) })
}

// untagged returns the tags that a machine must not have: those of the spec, and the quarantine tag. It omits tags that
// MAAS does not have: no machine has them, and MAAS rejects a request that names them.
func (s *scope) untagged(ctx context.Context, notTags []string) ([]string, error) {
	tags, err := s.identity.Inventory.Tags(ctx)
	return slices.DeleteFunc(append(slices.Clone(notTags), quarantine.Tag), func(name string) bool {
		return !slices.ContainsFunc(tags, func(t maas.Tag) bool { return t.Name == name })
	}), err
}
