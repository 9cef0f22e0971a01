// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

var (
	errRefused = errors.New("refused")
	noon       = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
)

// cast is a fake of the members of a cluster, with an API server that has their pods.
type cast struct {
	Members
	server client.WithWatch
	r      *Reconciler
	hcp    *hyperv1.HostedControlPlane
	// seen holds the answers of the members, by pod.
	seen *cluster
	// refuses maps a request, in the format of did, to the error that it fails with.
	refuses map[string]error

	lock sync.Mutex
	// dialed are the members of each dial, and open is the number of clients that are not closed.
	dialed []string
	open   int
	did    []string
	within time.Duration
}

// newCast returns the three members of a healthy cluster, with notes that match. Each has a pod and a claim whose UID
// is the pod's name.
func newCast(t *testing.T) *cast {
	t.Helper()
	c := &cast{hcp: fixture.ControlPlane(), seen: three(), refuses: map[string]error{}}
	c.hcp.Spec.ControllerAvailabilityPolicy, c.hcp.UID, c.hcp.Generation = hyperv1.HighlyAvailable, "1234", 3
	notes := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.NotesConfigMap}, Data: map[string]string{}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd"}, Status: appsv1.StatefulSetStatus{UpdateRevision: "new"}}
	objects := []client.Object{c.hcp, notes, set}
	for _, m := range c.seen.members {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: m.pod, UID: types.UID(m.pod), Labels: map[string]string{appsv1.StatefulSetRevisionLabel: "new"}}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.ClaimName(m.pod), UID: types.UID(m.pod)}}
		objects = append(objects, &corev1.Pod{ObjectMeta: meta}, claim)
		notes.Data[m.pod] = "Started " + m.pod
		m.listed.PeerURLs = []string{"peer " + m.pod}
	}
	c.server = fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(objects...).WithStatusSubresource(c.hcp).Build()
	c.r = &Reconciler{
		Client: c.server, Live: c.server, Clock: clocktesting.NewFakePassiveClock(noon), AnswerTimeout: 7 * time.Second, Dial: c.dial,
		PeerURL: func(_, pod string) string { return "peer " + pod }, ClientURL: func(_, pod string) string { return pod },
		Scrape: func(context.Context, string, string) (map[string]*dto.MetricFamily, error) { return nil, errRefused },
	}
	return c
}

// refuse makes the server fail the requests with this prefix, as in "get v1.Pod clusters-demo/etcd-1".
func (c *cast) refuse(what string, err error) {
	server := testenv.Intercept(c.server, func(r testenv.Request) error {
		if strings.HasPrefix(r.String(), what) {
			return err
		}
		return r.Do()
	})
	c.r.Client, c.r.Live = server, server
}

func (c *cast) dial(_ context.Context, in string, urls []string) (Members, error) {
	if err := c.refuses["dial"]; err != nil || in != namespace {
		return nil, err
	}
	c.dialed = append(c.dialed, strings.Join(urls, " "))
	c.open++
	return c, nil
}

func (c *cast) Close() error {
	c.open--
	return nil
}

// told records a request and its timeout, and returns its error from refuses.
func (c *cast) told(ctx context.Context, format string, args ...any) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	what := fmt.Sprintf(format, args...)
	c.did = append(c.did, what)
	if end, ok := ctx.Deadline(); ok {
		c.within = time.Until(end).Round(time.Second)
	}
	return c.refuses[what]
}

func (c *cast) Status(ctx context.Context, url string) (*clientv3.StatusResponse, error) {
	err := c.told(ctx, "status %s", url)
	for _, m := range c.seen.members {
		if m.clientURL == url && m.status != nil {
			return m.status, err
		}
	}
	return nil, errRefused
}

func (c *cast) MemberList(ctx context.Context, _ ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	list := &clientv3.MemberListResponse{Members: c.seen.strangers}
	for _, m := range c.seen.members {
		if m.listed != nil {
			list.Members = append(list.Members, m.listed)
		}
	}
	return list, c.told(ctx, "list")
}

func (c *cast) AlarmList(ctx context.Context) (*clientv3.AlarmResponse, error) {
	return &clientv3.AlarmResponse{Alarms: c.seen.alarms}, c.told(ctx, "alarms")
}

func (c *cast) HashKV(ctx context.Context, url string, revision int64) (*clientv3.HashKVResponse, error) {
	return &clientv3.HashKVResponse{Hash: 7}, c.told(ctx, "hash %s %d", url, revision)
}

func (c *cast) MemberRemove(ctx context.Context, id uint64) (*clientv3.MemberRemoveResponse, error) {
	return nil, c.told(ctx, "remove %d", id)
}

func (c *cast) MemberAddAsLearner(ctx context.Context, urls []string) (*clientv3.MemberAddResponse, error) {
	return nil, c.told(ctx, "add %s", strings.Join(urls, ","))
}

func (c *cast) MemberPromote(ctx context.Context, id uint64) (*clientv3.MemberPromoteResponse, error) {
	return nil, c.told(ctx, "promote %d", id)
}

func (c *cast) Defragment(ctx context.Context, url string) (*clientv3.DefragmentResponse, error) {
	return nil, c.told(ctx, "defragment %s", url)
}

func (c *cast) Compact(ctx context.Context, revision int64, _ ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	return nil, c.told(ctx, "compact %d", revision)
}

func (c *cast) AlarmDisarm(ctx context.Context, alarm *clientv3.AlarmMember) (*clientv3.AlarmResponse, error) {
	return nil, c.told(ctx, "disarm %s of %d", (*etcdserverpb.AlarmMember)(alarm).Alarm, alarm.MemberID)
}

func (c *cast) edit(obj client.Object, change func()) {
	err := c.server.Get(context.Background(), client.ObjectKeyFromObject(obj), obj)
	if change(); err == nil {
		err = c.server.Update(context.Background(), obj)
	}
	if err != nil {
		panic(err)
	}
}
