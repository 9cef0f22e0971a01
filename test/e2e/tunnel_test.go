// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	texttemplate "text/template"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
	"github.com/openshift/hypershift/test/journey"
)

//go:embed webhook.yaml
var webhook string

// tunnel checks that the hosted API server reaches Services and pods of the guest. The management cluster has no route
// to them, so the connections go through the agents on the nodes. The workload must run.
func (s *suite) tunnel(t *testing.T) {
	guest, err := s.GuestClient(s.cluster)
	s.must(t, err)
	s.reach(t, "agents of the tunnel connected", soon, daemonSetReady(guest, "tunnel-agent", 2))
	pods := &corev1.PodList{}
	s.must(t, guest.List(t.Context(), pods, client.InNamespace("default"), client.MatchingLabels{"app": "web"}))
	NewWithT(t).Expect(pods.Items).NotTo(BeEmpty())
	for what, path := range map[string]string{
		"a Service": "services/web:80", "a pod": "pods/" + pods.Items[0].Name + ":8080",
	} {
		s.reach(t, what+" answers the API server", soon, func(ctx context.Context) (bool, string, error) {
			out, err := s.Read(ctx, s.Guest(s.cluster, "get", "--raw", "/api/v1/namespaces/default/"+path+"/proxy/")...)
			return strings.HasPrefix(out, "Hello from web-"), strings.TrimSpace(out), err
		})
	}
	s.webhook(t, guest)
}

// webhook installs an admission webhook with failurePolicy Fail that a pod serves, and checks that it decides.
func (s *suite) webhook(t *testing.T, guest client.Client) {
	g := NewWithT(t)
	s.must(t, s.Type(t.Context(), s.Guest(s.cluster, "apply", "-f", s.webhookManifest(t))...))
	s.reach(t, "webhook running", soon, journey.DeploymentAvailable(guest, "default", "admit", 1))
	create := func(ctx context.Context, name string) error {
		return guest.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
	s.reach(t, "webhook allows", soon, func(ctx context.Context) (bool, string, error) {
		err := create(ctx, "allowed")
		return err == nil, fmt.Sprint(err), nil
	})
	g.Expect(create(t.Context(), "refused")).To(MatchError(ContainSubstring("the webhook refuses this name")))
	s.restartAgents(t, guest)
	s.must(t, s.Type(t.Context(), s.Guest(s.cluster, "delete", "validatingwebhookconfiguration", "admit")...))
}

// restartAgents replaces all agents of the tunnel while objects are written that the webhook decides about, and checks
// that each gets its decision.
func (s *suite) restartAgents(t *testing.T, guest client.Client) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	wrong := make(chan []string, 1)
	var written atomic.Int64
	go func() { wrong <- decisions(ctx, guest, &written) }()
	s.must(t, s.Type(t.Context(), s.Guest(s.cluster, "rollout", "restart", "daemonset/tunnel-agent", "-n", "kube-system")...))
	s.must(t, s.Type(t.Context(), s.Guest(s.cluster, "rollout", "status", "daemonset/tunnel-agent", "-n", "kube-system",
		"--timeout=5m")...))
	stop()
	NewWithT(t).Expect(<-wrong).To(BeEmpty(), "decisions of the webhook")
	s.Say("%d requests were decided while the agents were replaced", written.Load())
}

// decisions writes objects, of which the webhook refuses each second one, until the context ends. It returns what was
// not decided as it should be.
func decisions(ctx context.Context, guest client.Client, written *atomic.Int64) []string {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var wrong []string
	for {
		select {
		case <-ctx.Done():
			return wrong
		case <-ticker.C:
		}
		name := []string{"asked", "refused"}[written.Load()%2]
		err := guest.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}},
			client.DryRunAll)
		if ctx.Err() != nil {
			return wrong
		}
		written.Add(1)
		decided := err == nil
		if name == "refused" {
			decided = err != nil && strings.Contains(err.Error(), "the webhook refuses this name")
		}
		if !decided {
			wrong = append(wrong, fmt.Sprintf("%s: %v", name, err))
		}
	}
}

// webhookManifest writes the manifest of a webhook with a new certificate, and returns its path.
func (s *suite) webhookManifest(t *testing.T) string {
	t.Helper()
	specs, err := images.Pullspecs(env.Env{Dir: s.Dir, Bin: s.Bin}.Images(), env.Registry)
	s.must(t, err)
	ca, err := pki.NewCA(pki.Name{CommonName: "webhook"}, time.Now())
	s.must(t, err)
	pair, err := ca.Issue(pki.Leaf{
		Name: pki.Name{CommonName: "admit"}, Server: true, Hosts: []string{"admit.default.svc"},
	}, pki.Lifetime{}, time.Now())
	s.must(t, err)
	var manifest bytes.Buffer
	s.must(t, texttemplate.Must(texttemplate.New("webhook").Parse(webhook)).Execute(&manifest, map[string]string{
		"Image": specs["web"], "Certificate": string(pair.CertPEM), "Key": string(pair.KeyPEM),
		"CA": base64.StdEncoding.EncodeToString(ca.CertPEM),
	}))
	file := s.Path(s.cluster + "-webhook.yaml")
	s.must(t, os.WriteFile(file, manifest.Bytes(), 0o600))
	return file
}

// daemonSetReady checks that a DaemonSet in kube-system has a ready pod on each of count nodes.
func daemonSetReady(c client.Client, name string, count int32) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		set := &appsv1.DaemonSet{}
		err := c.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: name}, set)
		return set.Status.NumberReady == count, fmt.Sprintf("%d of %d agents connected", set.Status.NumberReady, count), err
	}
}
