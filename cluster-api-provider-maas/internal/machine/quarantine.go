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

// setAside keeps the machine held, on which a deployment failed, from being taken again at once: by this process, and, through the
// MaasCluster, by those that come after it.
func (r *Reconciler) setAside(ctx context.Context, s *scope) error {
	id, now := s.systemID(), r.Clock.Now().UTC()
	s.identity.SetAside.Add(id, now.Add(r.Timing.SetAside))
	if s.infra == nil || s.observed != nil && s.composed(s.observed) {
		return nil // A virtual machine does not come back.
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

// heed sets aside what failed a while ago, for this MaasMachine or for any of the cluster, and notes what is in quarantine.
func (r *Reconciler) heed(s *scope) {
	for _, f := range failuresOf(s.machine) {
		s.identity.SetAside.Add(f.SystemID, f.At.Add(r.Timing.SetAside))
	}
	s.quarantined = map[string]bool{}
	for id, record := range quarantine.Records.Of(s.infra) {
		s.identity.SetAside.Add(id, record.Last.Add(r.Timing.SetAside))
		s.quarantined[id] = record.Quarantined && !record.Shared
	}
}

// wellAgain forgets the failures of a machine that runs now, unless it was put into quarantine.
func (r *Reconciler) wellAgain(ctx context.Context, s *scope) error {
	record, failed := quarantine.Records.Of(s.infra)[s.systemID()]
	if !failed || record.Quarantined {
		return nil
	}
	return upsert.Patch(ctx, r.Client, s.infra, func() { quarantine.Records.Remove(s.infra, s.systemID()) })
}

// untagged are the tags that a machine must not carry: those of the spec, and that of the quarantine. A tag that MAAS does not have
// is on no machine; MAAS refuses to be asked for it.
func (s *scope) untagged(ctx context.Context, notTags []string) ([]string, error) {
	tags, err := s.identity.Inventory.Tags(ctx)
	return slices.DeleteFunc(append(slices.Clone(notTags), quarantine.Tag), func(name string) bool {
		return !slices.ContainsFunc(tags, func(t maas.Tag) bool { return t.Name == name })
	}), err
}
