package main

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/maas/maastest"
	"github.com/openshift/hypershift/support/testenv"
)

// unwell makes a fifth of all calls fail: refused before anything is done, or done and the answer lost or cut off.
func unwell(_ maastest.Call, w http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
	if rand.IntN(5) != 0 {
		return false, nil
	}
	codes := []int{500, 502, 503, 504}
	if rand.IntN(2) == 0 {
		w.WriteHeader(codes[rand.IntN(len(codes))])
		return true, nil
	}
	return false, func(w http.ResponseWriter) bool {
		if rand.IntN(2) == 0 {
			w.WriteHeader(http.StatusGatewayTimeout)
			return true
		}
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
		return true
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	machines := 100
	if testing.Short() {
		machines = 20
	}
	server := inventoryOf(t, machines)
	server.DeployTime, server.ReleaseTime = 100*time.Millisecond, 50*time.Millisecond
	server.Intercept = unwell
	b := newStage(t, testenv.Start(t, crds.Infrastructure, crds.ClusterAPI), testNamespace, server.URL, server.APIKey)
	for range machines {
		b.add()
	}
	b.converge(wire{}, hasty, 2*time.Minute)
	b.expectNoLeak(marksOf(server))
	for _, m := range b.machines() {
		b.remove(m)
	}
	b.converge(wire{}, hasty, 2*time.Minute)
	b.expectNoLeak(marksOf(server))
}

// marksOf tells for which MaasMachine each machine is allocated.
func marksOf(server *maastest.Server) map[string]string {
	marks := map[string]string{}
	for _, m := range server.Held() {
		marks[m.ID] = m.Annotations[maas.AnnotationMachineUID]
	}
	return marks
}
