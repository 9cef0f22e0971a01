// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
)

// member is a desired member of the control plane's etcd.
type member struct {
	pod, clientURL string
	// note is the persisted state of the member from earlier reconciles.
	note component.Note
	// status is the member's own status; nil if it did not answer.
	status *clientv3.StatusResponse
	// listed is the member in the cluster's list; nil if it is not in the list, or there is no list.
	listed *etcdserverpb.Member
	// hash is the checksum of the member's data; nil if it was not requested.
	hash *clientv3.HashKVResponse
	// live and claim are the member's pod and the claim of its volume; nil if they do not exist.
	live  *corev1.Pod
	claim *corev1.PersistentVolumeClaim
}

// cluster is everything that a reconcile observed.
type cluster struct {
	members []*member
	// revision is the revision of new pods of the StatefulSet; empty until its controller has set it.
	revision string
	// listed reports whether the cluster listed its members, which takes a quorum.
	listed bool
	// strangers are members of the cluster that are not desired members of the control plane.
	strangers []*etcdserverpb.Member
	// alarms are the active alarms of members.
	alarms []*etcdserverpb.AlarmMember
	// compacted is the last revision at which this operator compacted.
	compacted int64
}

// answers reports whether a member has joined the cluster and serves.
func (m *member) answers() bool { return m.status != nil && m.status.Leader != 0 }

// healthy reports whether a member counts for the quorum.
func (m *member) healthy() bool { return m.answers() && !m.status.IsLearner }

// leads reports whether the member is the leader.
func (m *member) leads() bool { return m.answers() && m.status.Leader == m.status.Header.MemberId }

// started reports whether a listed member ever joined the cluster: it publishes its client URLs when it joins.
func (m *member) started() bool { return m.listed != nil && len(m.listed.ClientURLs) > 0 }

func (r *Reconciler) look(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*cluster, error) {
	notes, err := component.ReadNotes(ctx, r.Live, hcp.Namespace)
	if err != nil {
		return nil, err
	}
	seen := &cluster{compacted: r.compacted}
	for _, pod := range component.Pods(hcp) {
		m := &member{pod: pod, clientURL: r.ClientURL(hcp.Namespace, pod), note: notes[pod]}
		if err := r.lookAt(ctx, hcp.Namespace, m); err != nil {
			return nil, err
		}
		seen.members = append(seen.members, m)
	}
	members, err := r.Dial(ctx, hcp.Namespace, seen.urls(func(*member) bool { return true }))
	if err != nil {
		return nil, err
	}
	defer func() { _ = members.Close() }()
	r.ask(ctx, seen, members)
	return seen, r.list(ctx, hcp.Namespace, seen)
}

func (r *Reconciler) lookAt(ctx context.Context, namespace string, m *member) error {
	pod, claim := &corev1.Pod{}, &corev1.PersistentVolumeClaim{}
	for name, obj := range map[string]client.Object{m.pod: pod, component.ClaimName(m.pod): claim} {
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading %T %s/%s: %w", obj, namespace, name, err)
		}
	}
	if pod.UID != "" {
		m.live = pod
	}
	if claim.UID != "" {
		m.claim = claim
	}
	return nil
}

// ask gets the status of all members concurrently.
func (r *Reconciler) ask(ctx context.Context, c *cluster, members Members) {
	ctx, cancel := context.WithTimeout(ctx, r.AnswerTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, m := range c.members {
		all.Go(func() {
			if status, err := members.Status(ctx, m.clientURL); err == nil {
				m.status = status
			}
		})
	}
	all.Wait()
}

// list gets the member list from a member that answers. It returns no error if no member can return the list, since a
// cluster without a quorum cannot.
func (r *Reconciler) list(ctx context.Context, namespace string, c *cluster) error {
	voters := c.urls((*member).healthy)
	if len(voters) == 0 {
		return nil
	}
	members, err := r.Dial(ctx, namespace, voters)
	if err != nil {
		return err
	}
	defer func() { _ = members.Close() }()
	soon, cancel := context.WithTimeout(ctx, r.AnswerTimeout)
	defer cancel()
	list, err := members.MemberList(soon)
	if err != nil {
		return nil
	}
	alarms, err := members.AlarmList(soon)
	if err != nil {
		return nil
	}
	c.listed, c.alarms = true, alarms.Alarms
	byURL := map[string]*member{}
	for _, m := range c.members {
		byURL[r.PeerURL(namespace, m.pod)] = m
	}
	for _, listed := range list.Members {
		if m := byURL[listed.PeerURLs[0]]; m != nil {
			m.listed = listed
		} else {
			c.strangers = append(c.strangers, listed)
		}
	}
	r.hash(ctx, c, members)
	return nil
}

func (c *cluster) claims() []corev1.PersistentVolumeClaim {
	var claims []corev1.PersistentVolumeClaim
	for _, m := range c.members {
		if m.claim != nil {
			claims = append(claims, *m.claim)
		}
	}
	return claims
}

func (c *cluster) urls(of func(*member) bool) []string {
	var urls []string
	for _, m := range c.members {
		if of(m) {
			urls = append(urls, m.clientURL)
		}
	}
	return urls
}
