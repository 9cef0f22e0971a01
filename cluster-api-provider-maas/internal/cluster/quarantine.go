// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// forgetFailures is the time after the last failure when the failures of a machine are removed.
	forgetFailures = 7 * 24 * time.Hour
	// toldAtMost is the maximum number of machines in a condition message, since the API server limits its length.
	toldAtMost = 20
	tagComment = "Deployments failed: no HyperShift cluster takes the machine until the tag is removed from it."
)

// quarantine prevents the allocation, by any cluster, of machines on which deployments failed although the image runs
// elsewhere. It ends when an administrator removes the tag in MAAS. If the MAAS user cannot set tags, it ends when the
// annotation of the MaasCluster is removed.
func (r *Reconciler) quarantine(ctx context.Context, s *scope) (ctrl.Result, error) {
	records := quarantine.Records.Of(s.infra)
	if len(records) == 0 || s.problem != nil {
		return phase.Done()
	}
	tagged, err := s.tagged(ctx, records)
	if err != nil {
		return phase.After(problemEvery)
	}
	machines, err := r.machines(ctx, s, r.Client)
	if err != nil {
		return ctrl.Result{}, err
	}
	limit := r.quarantineAfter(s)
	for _, id := range slices.Sorted(maps.Keys(records)) {
		record := records[id]
		switch {
		case record.Shared && !tagged[id], !record.Quarantined && r.Clock.Since(record.Last) > forgetFailures:
			err = upsert.Patch(ctx, r.Client, s.infra, func() { quarantine.Records.Remove(s.infra, id) })
		case !record.Quarantined && limit > 0 && record.Failures >= limit && runs(machines, record.Image, id):
			err = r.confine(ctx, s, id, record)
		}
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	return phase.Done()
}

// quarantineAfter returns the limit in the annotation of the MaasCluster, or else the limit of the process.
func (r *Reconciler) quarantineAfter(s *scope) int {
	if limit, err := strconv.Atoi(s.infra.Annotations[quarantine.AfterAnnotation]); err == nil {
		return limit
	}
	return r.QuarantineAfter
}

// tagged reports which of the machines that were tagged still have the tag in MAAS.
func (s *scope) tagged(ctx context.Context, records map[string]quarantine.Record) (map[string]bool, error) {
	var ids []string
	for id, record := range records {
		if record.Shared {
			ids = append(ids, id)
		}
	}
	tagged := map[string]bool{}
	if len(ids) == 0 {
		return tagged, nil
	}
	slices.Sort(ids)
	list, err := s.identity.Client.ListMachines(ctx, maas.MachineFilter{SystemIDs: ids})
	if err != nil {
		return nil, err
	}
	for i := range list {
		tagged[list[i].SystemID] = slices.Contains(list[i].TagNames, quarantine.Tag)
	}
	for _, id := range ids {
		if _, shown := tagged[id]; !shown {
			tagged[id] = true // The machine is allocated to another user, so its tags are unknown.
		}
	}
	return tagged, nil
}

// runs reports whether an image runs on another machine, so that the image is not the cause of the failure.
func runs(machines []infrav1.MaasMachine, image, otherThan string) bool {
	return slices.ContainsFunc(machines, func(m infrav1.MaasMachine) bool {
		return m.Spec.Image == image && m.Spec.SystemID != nil && *m.Spec.SystemID != otherThan && m.Status.Ready
	})
}

// confine tags the machine in MAAS. If the MAAS user cannot set tags, the quarantine is limited to this cluster and the
// event says so.
func (r *Reconciler) confine(ctx context.Context, s *scope, id string, record quarantine.Record) error {
	record.Quarantined = true
	where := "for all clusters"
	if err := s.tag(ctx, id); err == nil {
		record.Shared = true
	} else if maas.IsForbidden(err) {
		where = "for this cluster only, because setting tags needs the API key of a MAAS administrator"
	} else {
		return fmt.Errorf("quarantining machine %s: %w", id, err)
	}
	var encodeErr error
	err := upsert.Patch(ctx, r.Client, s.infra, func() { encodeErr = quarantine.Records.Set(s.infra, id, record) })
	if err := errors.Join(err, encodeErr); err != nil {
		return err
	}
	r.warn(s.infra, "MachineQuarantined", fmt.Sprintf("%s, %s. Fix the machine, then end the quarantine: %s", failed(id, record), where, quarantine.Release(s.infra, id, record.Shared)))
	return nil
}

func failed(id string, record quarantine.Record) string {
	return fmt.Sprintf("machine %s (%s) is quarantined: %d deployments of %s failed on it, although the image runs on other machines", record.Hostname, id, record.Failures, record.Image)
}

// tag adds the tag to a machine, and creates the tag if MAAS does not have it.
func (s *scope) tag(ctx context.Context, id string) error {
	if !s.user.IsSuperuser {
		return &maas.Error{StatusCode: http.StatusForbidden}
	}
	_, err := s.identity.Client.UpdateTagMachines(ctx, quarantine.Tag, []string{id}, nil)
	if !maas.IsNotFound(err) {
		return err
	}
	if _, err := s.identity.Client.CreateTag(ctx, quarantine.Tag, tagComment); err != nil && maas.FieldMessages(err, "name") == nil {
		return err
	}
	_, err = s.identity.Client.UpdateTagMachines(ctx, quarantine.Tag, []string{id}, nil)
	return err
}

// quarantineCondition lists the machines that this cluster quarantined. It is present only if there are or were some.
func (s *scope) quarantineCondition() []metav1.Condition {
	records := quarantine.Records.Of(s.infra)
	var told []string
	for _, id := range slices.Sorted(maps.Keys(records)) {
		if record := records[id]; record.Quarantined {
			told = append(told, fmt.Sprintf("%s; to end the quarantine: %s", failed(id, record), quarantine.Release(s.infra, id, record.Shared)))
		}
	}
	switch {
	case len(told) > 0:
		return []metav1.Condition{condition.True(ConditionQuarantine, "DeploymentsFailed", strings.Join(told[:min(len(told), toldAtMost)], ". "))}
	case meta.FindStatusCondition(s.infra.Status.Conditions, ConditionQuarantine) != nil:
		return []metav1.Condition{condition.False(ConditionQuarantine, "None", "")}
	}
	return nil
}
