// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/support/condition"
)

func (r *Reconciler) report(ctx context.Context, s *scope, _ error) error {
	r.Metrics.take(s.hcp.Namespace, s.seen, r.disks)
	next := condition.Merge(s.hcp.Status.Conditions, s.hcp.Generation, s.conditions(r.Clock.Now())...)
	if fast, known := diskFast(component.Pods(s.hcp), r.disks); known {
		next = condition.Merge(next, s.hcp.Generation, fast)
	}
	if equality.Semantic.DeepEqual(s.hcp.Status.Conditions, next) {
		return nil
	}
	before := s.hcp.DeepCopy()
	s.hcp.Status.Conditions = next
	// Several controllers write this list of conditions.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, s.hcp, patch); err != nil {
		return fmt.Errorf("writing the status of HostedControlPlane %s/%s: %w", s.hcp.Namespace, s.hcp.Name, err)
	}
	return nil
}

// conditions returns the conditions of the members. They contain no values that change all the time, such as sizes.
func (s *scope) conditions(now time.Time) []metav1.Condition {
	all := []metav1.Condition{s.healthy(now)}
	active := string(hyperv1.EtcdRecoveryActive)
	if c, known := s.resized(); known {
		all = append(all, c)
	}
	switch replaced := s.replaced(); {
	case replaced != "":
		all = append(all, condition.True(active, hyperv1.EtcdMemberReplacedReason, replaced))
	case condition.IsTrue(s.hcp.Status.Conditions, active):
		all = append(all, condition.False(active, hyperv1.AsExpectedReason, ""))
	}
	return all
}

// replaced describes the member that is joining the cluster again; empty if none is.
func (s *scope) replaced() string {
	for _, m := range s.seen.members {
		switch {
		case s.step.action == remove && s.step.member == m:
			return fmt.Sprintf("Member %s is replaced: %s", m.pod, s.step.why)
		case s.seen.listed && (m.listed == nil || m.listed.IsLearner):
			return fmt.Sprintf("Member %s is replaced: it is not yet back with all data", m.pod)
		}
	}
	return ""
}

func (s *scope) healthy(now time.Time) metav1.Condition {
	t := string(hyperv1.EtcdMembersHealthy)
	c := s.seen
	if lost := c.lost(now); len(c.members)-len(lost) <= len(c.members)/2 {
		return condition.False(t, hyperv1.EtcdQuorumLostReason, fmt.Sprintf(
			"The data of %s is lost, and the %d of %d members that are left have no quorum: etcd cannot recover automatically. Restore a backup: "+
				"`hypershift restore cluster --discard-data --from FILE --key-file FILE`; docs/how-to/restore.md and docs/how-to/etcd.md say more", strings.Join(lost, ", "), len(c.members)-len(lost), len(c.members)))
	}
	if replaced := s.replaced(); replaced != "" {
		return condition.False(t, hyperv1.EtcdMemberReplacedReason, replaced)
	}
	switch out := c.out(); {
	case out != "":
		return condition.False(t, hyperv1.EtcdMemberUnhealthyReason, fmt.Sprintf("%s: %d of %d members are healthy",
			out, len(c.urls((*member).healthy)), len(c.members))+s.patient(now)+c.waiting())
	case !c.listed:
		return condition.False(t, hyperv1.EtcdWaitingForQuorumReason, "The members do not agree on the membership of the cluster")
	case len(c.strangers) > 0:
		return condition.False(t, hyperv1.EtcdMemberUnhealthyReason, fmt.Sprintf(
			"The cluster has a member %q (%x) that does not belong to the control plane; remove it with `etcdctl member remove %x`",
			c.strangers[0].Name, c.strangers[0].ID, c.strangers[0].ID))
	case len(c.alarms) > 0:
		return condition.False(t, hyperv1.EtcdAlarmReason, "Alarms are raised: "+c.raised()+s.undecided())
	}
	return condition.True(t, hyperv1.AsExpectedReason, c.shared())
}

// out describes the members that do not serve; empty if all serve. Members that do not answer need attention. Others
// run without a leader.
func (c *cluster) out() string {
	var silent, alone []string
	for _, m := range c.members {
		switch {
		case m.status == nil:
			silent = append(silent, m.pod)
		case !m.healthy():
			alone = append(alone, m.pod)
		}
	}
	switch {
	case len(alone) == 0 && len(silent) == 0:
		return ""
	case len(alone) == 0:
		return "No answer from " + strings.Join(silent, ", ")
	case len(silent) == 0:
		return "No leader for " + strings.Join(alone, ", ")
	}
	return fmt.Sprintf("No answer from %s, and no leader for %s", strings.Join(silent, ", "), strings.Join(alone, ", "))
}

// shared describes the node that runs so many members that its failure breaks the quorum; empty if there is none.
func (c *cluster) shared() string {
	hosts := map[string][]string{}
	for _, m := range c.members {
		if m.live == nil || m.live.Spec.NodeName == "" {
			continue
		}
		node := m.live.Spec.NodeName
		hosts[node] = append(hosts[node], m.pod)
		if here := hosts[node]; len(c.members) > 1 && len(c.members)-len(here) <= len(c.members)/2 {
			return fmt.Sprintf("%s share node %s, whose failure breaks the quorum; when a third node has capacity, move one of them there, as docs/how-to/etcd.md says",
				strings.Join(here, " and "), node)
		}
	}
	return ""
}

// patient returns when the volume of a repeatedly ending member will be replaced; empty if there is no such member.
func (s *scope) patient(now time.Time) string {
	if s.paused {
		return ""
	}
	for _, m := range s.seen.members {
		if until := m.until(now); until != "" && s.seen.othersWell(m) {
			return fmt.Sprintf("; if %s does not recover, its volume is replaced %s", m.pod, until)
		}
	}
	return ""
}

// lost returns the members whose data is certainly gone.
func (c *cluster) lost(now time.Time) []string {
	var lost []string
	for _, m := range c.members {
		if m.note.Stage == component.Started && m.lost(now) != "" {
			lost = append(lost, m.pod)
		}
	}
	return lost
}

// undecided returns a remedy for members with different data, when no step can repair them.
func (s *scope) undecided() string {
	if len(s.seen.corrupt()) == 0 || s.step.why != "" {
		return ""
	}
	return "; not serving: the members' data has diverged, and no healthy majority agrees. Restore a snapshot, as " +
		"docs/how-to/etcd.md says under \"The quorum is lost\""
}

func (c *cluster) raised() string {
	var all []string
	for _, alarm := range c.alarms {
		name := fmt.Sprintf("%x", alarm.MemberID)
		for _, m := range c.members {
			if m.listed != nil && m.listed.ID == alarm.MemberID {
				name = m.pod
			}
		}
		all = append(all, alarm.Alarm.String()+" by "+name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
