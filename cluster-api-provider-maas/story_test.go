// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/metrics/metricstest"
	"github.com/openshift/hypershift/support/testenv"
)

// TestStory follows the debugging scenario of docs/reference/logging.md: the MAAS key becomes invalid, and the log and
// the metrics of the provider show it. The process logs at the highest verbosity, and the log contains no secret.
func TestStory(t *testing.T) {
	t.Parallel()
	const userData = "#cloud-config\nchpasswd: correct-horse-battery"
	d := newDriver(t, testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI), "clusters-story")
	bootstrap := &corev1.Secret{ObjectMeta: d.meta("bootstrap")}
	d.change(bootstrap, func() { bootstrap.Data["value"] = []byte(userData) })
	credentials := &corev1.Secret{ObjectMeta: d.meta("maas"), Data: map[string][]byte{
		maas.SecretKeyEndpoint: []byte(d.endpoint), maas.SecretKeyAPIKey: []byte(d.key)}}
	d.create(credentials)
	address, token := testenv.FreeAddress(t), metricstest.Reader(t, d.cfg)
	l := d.live(killPoint{}, "--credentials-secret=maas", "--metrics-bind-addr="+address, "--v=10")

	d.add()
	d.add()
	d.Eventually(d.unready, patience, tick).Should(BeEmpty())
	d.Eventually(func() metricstest.Samples { return metricstest.Scrape(t, address, token) }, patience, tick).Should(And(
		HaveKeyWithValue(`capmaas_maas_available{cluster="demo",namespace="clusters-story",reason="AsExpected"}`, 1.0),
		HaveKeyWithValue(`capmaas_machines{cluster="demo",namespace="clusters-story",state="Deployed"}`, 2.0),
		HaveKeyWithValue(`capmaas_machine_deploy_duration_seconds_count`, 2.0)))

	wrong := d.key[:len(d.key)-4] + "oops"
	d.change(credentials, func() { credentials.Data[maas.SecretKeyAPIKey] = []byte(wrong) })
	d.Eventually(func() metricstest.Samples { return metricstest.Scrape(t, address, token) }, patience, tick).Should(
		HaveKeyWithValue(`maas_client_request_duration_seconds_count{code="401",operation="users.whoami"}`, BeNumerically(">", 0)))
	d.add()
	d.Eventually(func() string { return d.reason("m-3") }, patience, tick).Should(Equal(machine.ReasonUnauthorized))
	d.Eventually(func() metricstest.Samples { return metricstest.Scrape(t, address, token) }, patience, tick).Should(And(
		HaveKeyWithValue(`capmaas_maas_available{cluster="demo",namespace="clusters-story",reason="MAASUnauthorized"}`, 0.0),
		HaveKeyWithValue(`capmaas_machines_not_ready{cluster="demo",namespace="clusters-story",reason="MAASUnauthorized"}`, 1.0),
		HaveKeyWithValue(`capmaas_machines{cluster="demo",namespace="clusters-story",state="Deployed"}`, 2.0)))

	d.change(credentials, func() { credentials.Data[maas.SecretKeyAPIKey] = []byte(d.key) })
	d.Eventually(d.unready, patience, tick).Should(BeEmpty())
	d.Eventually(func() metricstest.Samples { return metricstest.Scrape(t, address, token) }, patience, tick).Should(And(
		HaveKeyWithValue(`capmaas_maas_available{cluster="demo",namespace="clusters-story",reason="AsExpected"}`, 1.0),
		HaveKeyWithValue(`capmaas_machine_deploy_duration_seconds_count`, 3.0)))

	told := map[string]line{
		"a machine is deployed":                      {"msg": "Changed MAAS", "operation": "machines.deploy", "code": 200.0, "controller": "maasmachine", "phase": "deployment", "name": "m-1"},
		"MAAS rejects the key":                       {"msg": "MAAS does not answer as it should", "code": 401.0},
		"an event of the MaasMachine with the cause": {"controller": "maasmachine-controller", "kind": "MaasMachine", "name": "m-3", "type": "Warning", "reason": "MAASUnauthorized"},
		"an event that the machine is deployed":      {"kind": "MaasMachine", "name": "m-3", "type": "Normal", "reason": "MachineDeployed"},
		"a write to the management cluster":          {"msg": "Wrote to Kubernetes", "verb": "patch", "kind": "MaasMachine", "object": "clusters-story/m-1", "phase": "allocation"},
		"a status update":                            {"msg": "Wrote to Kubernetes", "verb": "patch", "kind": "MaasMachine", "subresource": "status", "object": "clusters-story/m-3"},
		"what was read from MAAS":                    {"msg": "Read from MAAS", "operation": "machines.list", "code": 200.0},
		"what is done to one machine":                {"msg": "Changed MAAS", "operation": "machines.allocate", "namespace": "clusters-story", "name": "m-3"},
	}
	d.Eventually(func() []string { // The log follows the status with a short delay.
		lines := parseLog(t, l.output.Bytes())
		var untold []string
		for what, want := range told {
			if !slices.ContainsFunc(lines, want.in) {
				untold = append(untold, what)
			}
		}
		return untold
	}, patience, tick).Should(BeEmpty(), "what no line says")
	l.kill()
	<-l.dead

	lines := parseLog(t, l.output.Bytes())
	deploy := lines[slices.IndexFunc(lines, line{"operation": "machines.deploy"}.in)]
	d.Expect(deploy).To(And(HaveKey("systemID"), HaveKey("hostname"), HaveKey("duration")))
	d.Expect(lines).NotTo(ContainElement(HaveKey("stacktrace")))

	d.Expect(l.output.String()).NotTo(ContainSubstring("workqueue_items"), "a queue that logs its items while they change can crash the program")

	secret := d.key[strings.LastIndex(d.key, ":")+1:]
	for _, word := range []string{d.key, wrong, secret, userData, "correct-horse", base64.StdEncoding.EncodeToString([]byte(userData)), "oauth_signature", "Response Body"} {
		d.Expect(l.output.String()).NotTo(ContainSubstring(word))
	}
}

const tick = 200 * time.Millisecond

// change updates an object that has no other writer.
func (b *world) change(obj client.Object, how func()) {
	b.t.Helper()
	b.Expect(b.client.Get(b.t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	how()
	b.Expect(b.client.Update(b.t.Context(), obj)).To(Succeed())
}

// reason returns the reason of the condition Ready of a MaasMachine.
func (b *world) reason(name string) string {
	m := &infrav1.MaasMachine{}
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, m); err != nil {
		return err.Error()
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// line is a line of the log, or the fields that a line must have.
type line map[string]any

// in reports whether another line has all fields of this one.
func (want line) in(other line) bool {
	for key, value := range want {
		if other[key] != value {
			return false
		}
	}
	return true
}

// parseLog parses a log. Every line must be JSON, except the last one, which a kill may have truncated.
func parseLog(t *testing.T, log []byte) []line {
	t.Helper()
	var all []line
	log = log[:bytes.LastIndexByte(log, '\n')+1]
	scanner := bufio.NewScanner(bytes.NewReader(log))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		l := line{}
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			// The Go runtime reports a panic or a race in several lines.
			t.Fatalf("%v: %s", err, log[bytes.Index(log, scanner.Bytes()):])
		}
		all = append(all, l)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
