// SPDX-License-Identifier: Apache-2.0

// Package ha tests a management cluster of three nodes with a highly available hosted cluster. Nodes fail, are drained
// and are disconnected, a disk is replaced, and the release is upgraded. The tests count the failures that clients of
// the hosted cluster see.
package ha

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
)

const (
	cluster = "ha"
	// wholeLimit is the timeout for all components of a control plane to be ready again.
	wholeLimit = 8 * time.Minute
)

var (
	// usual clients retry long enough for a failover, but not long enough to wait for a connection timeout.
	usual = limits{request: 5 * time.Second, patience: 30 * time.Second}
	// patient clients are for the short form, which runs in parallel with all other tests: only a real outage lasts
	// longer than their timeout.
	patient = limits{request: 15 * time.Second, patience: 2 * time.Minute}
)

// part is one of the scenarios.
type part struct {
	name string
	run  func(*suite, *testing.T)
}

// parts returns the scenarios in the order in which they run.
func parts() []part {
	all := []part{
		{"When a cluster is highly available, its control plane should be spread over three nodes, and scheduled backups should run", (*suite).create},
		{"When a node dies, the API should stay available", (*suite).nodeDies},
	}
	if testing.Short() {
		// The cluster is removed with its environment: three API servers take long to stop, and `test/journey` already
		// destroys clusters.
		return all
	}
	return append(all,
		part{"When etcd changes while a node is dead, the other members should wait for the member on that node", (*suite).etcdChanges},
		part{"When the node that has the API's address dies, the API should stay available", (*suite).holderDies},
		part{"When a zone is disconnected, the API should stay available", (*suite).zoneCut},
		part{"When a node is drained, the API should stay available", (*suite).drain},
		part{"When an etcd volume is lost, its member should be replaced", (*suite).volumeLost},
		part{"When the release is upgraded, the API should stay available", (*suite).upgrade},
		part{"When the cluster is restored, its etcd members should have only the backup's data, and its nodes and pods should keep running", (*suite).restore},
		part{"When the cluster is destroyed, nothing should be left", (*suite).destroy})
}

// suite holds what the parts share.
type suite struct {
	*journey.Walker
	c client.Client
	// figures are printed at the end.
	figures []string
}

// TestHighlyAvailable checks that a hosted cluster stays available during failures and changes. With -short, only a
// node fails.
func TestHighlyAvailable(t *testing.T) {
	s := start(t, 3)
	for _, part := range parts() {
		ok := t.Run(part.name, func(t *testing.T) { part.run(s, t) })
		if !ok {
			t.Fatalf("stopping here: what follows leans on %q", part.name)
		}
	}
	for _, figure := range s.figures {
		s.Say("%s", figure)
	}
}

// start brings up an environment with this number of management nodes, and takes it down when the test ends.
// HYPERSHIFT_E2E_KEEP=1 keeps it for inspection.
func start(t *testing.T, nodes int) *suite {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to make namespaces for the machines")
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	e, err := env.New("", bin)
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{Walker: journey.NewWalker(e.Bin, e.Dir, os.Stdout)}
	if _, err := os.Stat(e.Kubeconfig()); err == nil {
		t.Fatalf("an environment is there already in %s: remove it with `make demo-down`", e.Dir)
	}
	t.Cleanup(func() {
		if os.Getenv("HYPERSHIFT_E2E_KEEP") != "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := s.StopEnvironment(ctx); err != nil {
			t.Errorf("taking the environment down: %v", err)
		}
	})
	s.must(t, s.StartEnvironment(t.Context(), "--nodes", strconv.Itoa(nodes)))
	s.c, err = s.Management()
	s.must(t, err)
	return s
}

func (s *suite) must(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.Diagnose(ctx, cluster)
	t.Fatal(err)
}

func (s *suite) create(t *testing.T) {
	flags, workers := []string{"--control-plane-availability-policy", "HighlyAvailable"}, 0
	if testing.Short() {
		s.must(t, s.Install(t.Context()))
	} else {
		s.installWithVirtualIP(t)
		// A cluster that is upgraded later starts with the previous release.
		previous, err := s.PreviousReleaseImage(t.Context())
		s.must(t, err)
		flags, workers = append(flags, "--release-image", previous), 1
	}
	s.must(t, s.CreateCluster(t.Context(), cluster, workers, flags...))
	s.must(t, s.FollowCluster(t.Context(), cluster, workers))
	s.schedule(t)
	s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))
	s.scheduled(t)
	s.spread(t, map[string]int{"etcd": 3, "kube-apiserver": 3, "kube-controller-manager": 2, "kube-scheduler": 2})
}

// spread waits until the pods of each component are on the given number of nodes. Terminating pods count too.
func (s *suite) spread(t *testing.T, components map[string]int) {
	t.Helper()
	for app, want := range components {
		s.must(t, s.Reach(t.Context(), fmt.Sprintf("%s on %d nodes", app, want), 5*time.Minute, func(ctx context.Context) (bool, string, error) {
			nodes, err := s.nodesOf(ctx, app)
			return len(nodes) == want, strings.Join(nodes, ", "), err
		}))
	}
}

// nodesOf returns the distinct nodes on which pods of a component run.
func (s *suite) nodesOf(ctx context.Context, app string) ([]string, error) {
	pods := &corev1.PodList{}
	if err := s.c.List(ctx, pods, client.InNamespace(journey.HostedNamespace(cluster)), client.MatchingLabels{"app": app}); err != nil {
		return nil, err
	}
	var nodes []string
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" && !slices.Contains(nodes, pod.Spec.NodeName) {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	return nodes, nil
}

// whole checks that all pods of the control plane are ready, and that etcd is healthy and has all members.
func (s *suite) whole(ctx context.Context) (bool, string, error) {
	hc := &hyperv1.HostedCluster{}
	if err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.Namespace, Name: cluster}, hc); err != nil {
		return false, "", err
	}
	for _, kind := range []string{string(hyperv1.HostedClusterAvailable), string(hyperv1.EtcdAvailable)} {
		if c := meta.FindStatusCondition(hc.Status.Conditions, kind); c == nil || c.Status != "True" {
			return false, fmt.Sprintf("%s: %+v", kind, c), nil
		}
	}
	if c, err := s.members(ctx); err != nil || c.Status != "True" {
		return false, "etcd: " + c.Message, err
	}
	pods := &corev1.PodList{}
	if err := s.c.List(ctx, pods, client.InNamespace(journey.HostedNamespace(cluster))); err != nil {
		return false, "", err
	}
	var unready []string
	for _, pod := range pods.Items {
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == "True" })
		if !ready && pod.Status.Phase != corev1.PodSucceeded {
			unready = append(unready, pod.Name)
		}
	}
	return len(unready) == 0, "not ready: " + strings.Join(unready, ", "), nil
}

// under calls do while administrators write, and checks that no write is lost.
func (s *suite) under(t *testing.T, what string, do func()) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Path(cluster+".kubeconfig"))
	s.must(t, err)
	most := usual
	if testing.Short() {
		most = patient
	}
	s.writing(t, what, config, most, do)
}

// writing calls do while clients with a configuration write, and checks that no write is lost.
func (s *suite) writing(t *testing.T, what string, config *rest.Config, most limits, do func()) {
	t.Helper()
	load, err := begin(t.Context(), config, most, func(last error) { s.Say("a write of %s is lost: %v", what, last) })
	s.must(t, err)
	done := false
	defer func() {
		if !done {
			load.end()
		}
	}()
	do()
	done = true
	counted := load.end()
	s.figures = append(s.figures, fmt.Sprintf("%-22s %s", what, counted))
	s.Say("%s: %s", what, counted)
	NewWithT(t).Expect(counted.Failed).To(BeZero(), counted.String())
}

// notReady checks that the management cluster has detected a node's failure.
func (s *suite) notReady(node string) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		n := &corev1.Node{}
		if err := s.c.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
			return false, "", err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status != corev1.ConditionTrue, string(c.Status), nil
			}
		}
		return false, "no condition", nil
	}
}

// node runs an operation on a node.
func (s *suite) node(t *testing.T, what, name string) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "devcluster", "node", what, name, "--dir", s.Dir))
}

func (s *suite) nodeDies(t *testing.T) {
	s.under(t, "node dies", func() {
		s.node(t, "stop", "management-3")
		s.must(t, s.Reach(t.Context(), "node known to be dead", 5*time.Minute, s.notReady("management-3")))
		s.node(t, "start", "management-3")
		s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))
	})
}

func (s *suite) zoneCut(t *testing.T) {
	s.under(t, "zone cut off", func() {
		s.node(t, "cut", "management-2")
		s.must(t, s.Reach(t.Context(), "node known to be cut off", 5*time.Minute, s.notReady("management-2")))
		s.node(t, "mend", "management-2")
		s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))
	})
}

func (s *suite) drain(t *testing.T) {
	s.under(t, "node drained", func() {
		s.must(t, s.Type(t.Context(), "kubectl", "drain", "management-3", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5m"))
		s.must(t, s.Type(t.Context(), "kubectl", "uncordon", "management-3"))
		s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))
	})
}

func (s *suite) volumeLost(t *testing.T) {
	const node = "management-2"
	before, lost := s.volumes(t), s.memberOn(t, node)
	s.under(t, "etcd volume lost", func() {
		s.node(t, "stop", node)
		s.node(t, "wipe", node)
		s.node(t, "start", node)
		// The manager of etcd discards no volume younger than ten minutes.
		s.must(t, s.Reach(t.Context(), "member being replaced", 15*time.Minute, func(ctx context.Context) (bool, string, error) {
			c, err := s.members(ctx)
			return c.Reason == hyperv1.EtcdMemberReplacedReason && strings.Contains(c.Message, lost), c.Reason + ": " + c.Message, err
		}))
		s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))
	})
	g, after := NewWithT(t), s.volumes(t)
	g.Expect(after).To(HaveLen(len(before)))
	for member, volume := range before {
		if member == lost {
			g.Expect(after[member]).NotTo(Equal(volume), "%s has another volume", member)
		} else {
			g.Expect(after[member]).To(Equal(volume), "%s keeps its volume", member)
		}
	}
}

// memberOn returns the etcd pod on a node.
func (s *suite) memberOn(t *testing.T, node string) string {
	t.Helper()
	pods := &corev1.PodList{}
	s.must(t, s.c.List(t.Context(), pods, client.InNamespace(journey.HostedNamespace(cluster)), client.MatchingLabels{"app": "etcd"}))
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == node {
			return pod.Name
		}
	}
	t.Fatalf("no member of etcd is on %s", node)
	return ""
}

// volumes returns the UIDs of the claims of etcd's members, by pod.
func (s *suite) volumes(t *testing.T) map[string]types.UID {
	t.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	s.must(t, s.c.List(t.Context(), claims, client.InNamespace(journey.HostedNamespace(cluster)), client.MatchingLabels{"app": "etcd"}))
	of := map[string]types.UID{}
	for _, claim := range claims.Items {
		of[strings.TrimPrefix(claim.Name, "data-")] = claim.UID
	}
	return of
}

// members returns the condition of etcd's members.
func (s *suite) members(ctx context.Context) (metav1.Condition, error) {
	hcp := &hyperv1.HostedControlPlane{}
	if err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.HostedNamespace(cluster), Name: cluster}, hcp); err != nil {
		return metav1.Condition{}, err
	}
	if c := meta.FindStatusCondition(hcp.Status.Conditions, string(hyperv1.EtcdMembersHealthy)); c != nil {
		return *c, nil
	}
	return metav1.Condition{Reason: "Unknown"}, nil
}

func (s *suite) upgrade(t *testing.T) {
	release, err := s.ReleaseImage(t.Context())
	s.must(t, err)
	_, version, _ := strings.Cut(release, "release:")
	s.under(t, "upgrade", func() {
		s.must(t, s.Type(t.Context(), "kubectl", "patch", "hostedcluster", cluster, "-n", journey.Namespace, "--type=merge",
			"-p", fmt.Sprintf(`{"spec":{"release":{"image":%q}}}`, release)))
		s.must(t, s.Reach(t.Context(), "control plane upgraded", 15*time.Minute, func(ctx context.Context) (bool, string, error) {
			hc := &hyperv1.HostedCluster{}
			if err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.Namespace, Name: cluster}, hc); err != nil {
				return false, "", err
			}
			if hc.Status.Version == nil || len(hc.Status.Version.History) == 0 {
				return false, "no history", nil
			}
			newest := hc.Status.Version.History[0]
			return newest.Version == version && newest.State == "Completed", fmt.Sprintf("%s %s", newest.Version, newest.State), nil
		}))
		s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))
	})
}

func (s *suite) destroy(t *testing.T) {
	s.must(t, s.DestroyCluster(t.Context(), cluster))
}
