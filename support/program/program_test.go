// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/openshift/hypershift/support/program"
	"github.com/openshift/hypershift/support/testenv"
)

// TestReadiness checks that a manager has a readiness check of its caches. The tests of support/informers cover the
// results of that check.
func TestReadiness(t *testing.T) {
	g, config := NewWithT(t), &rest.Config{Host: "https://127.0.0.1:1"}
	address := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	mgr, err := program.NewManager(program.Guest, config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: address,
	})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = program.AddCluster(mgr, program.Management, config, nil, cache.Options{}, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	testenv.Run(t, mgr)
	for path, want := range map[string]int{
		"/readyz": http.StatusOK, "/readyz/caches-guest": http.StatusOK, "/readyz/caches-management": http.StatusOK,
		"/readyz/caches-another": http.StatusNotFound,
	} {
		g.Eventually(func() (int, error) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
			if err != nil {
				return 0, err
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return 0, err
			}
			return answer.StatusCode, answer.Body.Close()
		}).Should(Equal(want), path)
	}
}
