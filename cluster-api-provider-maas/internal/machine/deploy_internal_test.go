// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/machinetoken"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// giveData sets the data of the bootstrap Secret.
func (k *rack) giveData(data map[string][]byte) {
	k.Reader = fakeclient.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "bootstrap"}, Data: data}).Build()
}

// unreadable makes all reads from the API server fail.
func unreadable(k *rack) {
	k.Reader = interceptor.NewClient(fakeclient.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errUnwritten
		}})
}

// TestDeploy checks that the deployment starts, and that a condition reports why it does not.
func TestDeploy(t *testing.T) {
	t.Parallel()
	answer := func(code int, message string) func(*rack) {
		return func(k *rack) { simtest.Refuse(k.t, k.site.Simulator, "machine.deploy", "m1", code, message) }
	}
	for name, tc := range map[string]struct {
		set    func(*rack)
		reason string
		again  time.Duration
		events []string
		failed string
	}{
		"all is well":                    {nil, "", 10 * time.Second, []string{lifecycle.ReasonDeploying}, ""},
		"the machine is locked":          {func(k *rack) { k.observed.Locked = true }, ReasonLocked, 15 * time.Second, nil, ""},
		"MAAS rejected it a moment ago":  {func(k *rack) { k.refusals.add("m1", Problem{ReasonUnavailable, "busy"}, k.site.Clock.Now()) }, ReasonUnavailable, 15 * time.Second, nil, ""},
		"there is no Secret":             {func(k *rack) { k.Reader = fakeclient.NewClientBuilder().Build() }, ReasonWaitingForBootstrapData, 15 * time.Second, nil, ""},
		"the Secret is empty":            {func(k *rack) { k.giveData(nil) }, ReasonWaitingForBootstrapData, 15 * time.Second, nil, ""},
		"the Machine names no Secret":    {func(k *rack) { k.owner.Spec.Bootstrap.DataSecretName = nil }, ReasonWaitingForBootstrapData, 15 * time.Second, nil, ""},
		"no subnet contains its address": {func(k *rack) { k.machine.Spec.StaticIP = &infrav1.StaticIPConfig{IP: "192.0.2.7"} }, "SubnetNotFound", 15 * time.Second, nil, ""},
		"MAAS is busy":                   {answer(http.StatusServiceUnavailable, "busy"), ReasonUnavailable, 15 * time.Second, nil, ""},
		"MAAS lacks the image":           {answer(http.StatusBadRequest, `{"distro_series": ["none"]}`), ReasonImageNotFound, 15 * time.Second, nil, ""},
		"MAAS rejects its network":       {answer(http.StatusBadRequest, `{"network": ["none"]}`), "", 10 * time.Second, []string{ReasonNotDeployable, lifecycle.ReasonReleasing}, ReasonNotDeployable},
		"MAAS rejects its storage":       {answer(http.StatusBadRequest, `{"storage": ["none"]}`), "", 10 * time.Second, []string{ReasonNotDeployable, lifecycle.ReasonReleasing}, ReasonNotDeployable},
		"MAAS rejects the kernel":        {answer(http.StatusBadRequest, `{"hwe_kernel": ["none"]}`), ReasonInvalid, 15 * time.Second, nil, ""},
		"the user lacks the permission":  {answer(http.StatusForbidden, "no"), ReasonForbidden, 15 * time.Second, nil, ""},
	} {
		t.Run("When "+name+", it should deploy or report why not", func(t *testing.T) {
			t.Parallel()
			k := holder(t, status.Allocated)
			maybe(tc.set, k)
			result, err := k.deploy(t.Context(), k.scope)
			k.expectReason(result, err, tc.reason, tc.again)
			k.expectEvents(tc.events...)
			installs := k.site.Has("m1").Status == status.Deploying
			if wants := tc.reason == "" && tc.failed == ""; installs != wants || wants && (k.observed.Status != maas.StatusDeploying || k.findings.outcome.Reason != lifecycle.ReasonDeploying) {
				t.Errorf("it is %s, and the pass knows %s, %+v", k.site.Has("m1").Status, k.observed.Status, k.findings.outcome)
			}
			if got := failuresOf(k.stored()); (len(got) == 1 && got[0].Reason == tc.failed) != (tc.failed != "") {
				t.Errorf("it wrote down %+v", got)
			}
		})
	}
	k := holder(t, status.Allocated)
	unreadable(k)
	if _, err := k.deploy(t.Context(), k.scope); !errors.Is(err, errUnwritten) {
		t.Errorf("an API server that gives no Secret says: %v", err)
	}
}

// TestDeployRequest checks the deploy request: the image, the user data with a token for this Machine only, and
// whether the system runs in memory.
func TestDeployRequest(t *testing.T) {
	t.Parallel()
	bearer := func(token string) string { return "Bearer " + base64.StdEncoding.EncodeToString([]byte(token)) }
	for inMemory, image := range map[bool]string{false: "custom/node-image", true: "ubuntu/noble"} {
		k := holder(t, status.Allocated, func(m *infrav1.MaasMachine) { m.Spec.Image, m.Spec.DeployInMemory = image, inMemory })
		k.giveData(map[string][]byte{bootstrapKey: []byte("#cloud-config\n# " + bearer("pool") + "\n"), hyperv1.UserDataTokenKey: []byte("pool")})
		k.refusals.add("m1", Problem{ReasonUnavailable, "busy"}, k.site.Clock.Now().Add(-time.Hour))
		if _, err := k.deploy(t.Context(), k.scope); err != nil {
			t.Fatal(err)
		}
		m := k.site.Has("m1")
		if want := "#cloud-config\n# " + bearer(machinetoken.Derive([]byte("pool"), "owner")) + "\n"; string(m.UserData) != want {
			t.Errorf("its user-data is %q", m.UserData)
		}
		if m.Ephemeral != inMemory || !strings.Contains(image, m.Series) || m.Series == "" {
			t.Errorf("it runs %s/%s in memory: %t", m.OSystem, m.Series, m.Ephemeral)
		}
		// The backoff starts again: the first error of the next series has the shortest delay.
		if pause := k.refusals.add("m1", Problem{}, k.site.Clock.Now()); pause > 18*time.Second {
			t.Errorf("what MAAS refused before counts still: it pauses for %s", pause)
		}
		page, err := k.identity.Client.ListEvents(t.Context(), maas.EventFilter{SystemIDs: []string{"m1"}, Level: "DEBUG"})
		told := ""
		for _, e := range page.Events {
			told += e.Description + "\n"
		}
		if err != nil || !strings.Contains(told, "ns/self") {
			t.Errorf("MAAS's log does not tell for whom: %q, %v", told, err)
		}
	}
}

// TestDeployLooksAnew checks that the machine is read again after MAAS rejected the deployment: the cached machine may
// be outdated.
func TestDeployLooksAnew(t *testing.T) {
	t.Parallel()
	k := holder(t, status.Allocated)
	simtest.Refuse(t, k.site.Simulator, "machine.deploy", "", http.StatusServiceUnavailable, "busy")
	k.site.Change("m1", func(m *inventory.Machine) { m.Hostname = "renamed" })
	if _, err := k.deploy(t.Context(), k.scope); err == nil {
		t.Fatal("MAAS was not asked")
	}
	if m, err := k.identity.Inventory.Machine(t.Context(), "m1", time.Hour); err != nil || m.Hostname != "renamed" {
		t.Errorf("what MAAS said before is still believed: %+v, %v", m, err)
	}
}

// TestGivenUpWhenRefused checks that another machine is tried when MAAS rejects the deployment for longer than the
// timeout.
func TestGivenUpWhenRefused(t *testing.T) {
	t.Parallel()
	invalid := &maas.Error{StatusCode: http.StatusBadRequest, Fields: map[string][]string{"hwe_kernel": {"none"}}}
	busy := &maas.Error{StatusCode: http.StatusServiceUnavailable}
	soon := func(m *infrav1.MaasMachine) { m.Spec.Timeouts.Allocate = &metav1.Duration{Duration: 3 * time.Minute} }
	for name, tc := range map[string]struct {
		err    error
		change func(*infrav1.MaasMachine)
		within time.Duration
	}{
		"it rejects a parameter":              {invalid, func(*infrav1.MaasMachine) {}, 2 * time.Minute},
		"it is busy":                          {busy, func(*infrav1.MaasMachine) {}, 10 * time.Minute},
		"it is busy and the timeout is short": {busy, soon, 3 * time.Minute},
	} {
		k := holder(t, status.Allocated, tc.change)
		k.seen = sighting{lifecycle.StateName(k.observed), simtest.Start}
		k.site.Clock.Step(tc.within)
		if _, err := k.heldUp(t.Context(), k.scope, tc.err); err == nil || len(failuresOf(k.stored())) > 0 {
			t.Errorf("when %s, it is given up too soon: %v", name, err)
		}
		k.refusals.end("m1")
		k.site.Clock.Step(1)
		if _, err := k.heldUp(t.Context(), k.scope, tc.err); err != nil {
			t.Errorf("when %s: %v", name, err)
		}
		if got := failuresOf(k.stored()); len(got) != 1 || got[0].Reason != ReasonNotDeployable {
			t.Errorf("when %s, it wrote down %+v", name, got)
		}
		k.expectEvents(ReasonNotDeployable, lifecycle.ReasonReleasing)
	}
}

// TestBootstrapOnce checks that the Secret is read once in a reconcile.
func TestBootstrapOnce(t *testing.T) {
	t.Parallel()
	k := holder(t, status.Allocated)
	first, err := k.bootstrap(t.Context(), k.scope)
	if err != nil || string(first[bootstrapKey]) != "#cloud-config\n" {
		t.Fatalf("it is %q, %v", first, err)
	}
	unreadable(k)
	if again, err := k.bootstrap(t.Context(), k.scope); err != nil || string(again[bootstrapKey]) != "#cloud-config\n" {
		t.Errorf("it is %q, %v", again, err)
	}
}
