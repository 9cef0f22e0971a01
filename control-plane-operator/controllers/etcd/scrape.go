// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
)

// metricsLimit is the maximum size in bytes of a metrics answer, far more than a member sends.
const metricsLimit = 16 << 20

// TLSScraper reads the metrics of a member at its client port and with a client certificate: network policies close the
// metrics port to other pods.
func TLSScraper(reader client.Reader) func(ctx context.Context, namespace, url string) (map[string]*dto.MetricFamily, error) {
	return func(ctx context.Context, namespace, url string) (map[string]*dto.MetricFamily, error) {
		config, err := component.ClientTLS(ctx, reader, namespace)
		if err != nil {
			return nil, err
		}
		return scrape(ctx, config, url)
	}
}

func scrape(ctx context.Context, config *tls.Config, url string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", url, err)
	}
	// No proxy: the member is in the same cluster.
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", url, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading the metrics of %s: it answers %s", url, response.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(response.Body, metricsLimit))
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", url, err)
	}
	return families, nil
}

// lookAtDisks reads the disk metrics of members that answer, when a measurement is due. A member whose metrics cannot
// be read is retried in the next reconcile.
func (r *Reconciler) lookAtDisks(ctx context.Context, namespace string, c *cluster) {
	if r.disks == nil {
		r.disks = map[string]*disk{}
	}
	for _, m := range c.members {
		if r.disks[m.pod] == nil {
			r.disks[m.pod] = &disk{}
		}
		if m.answers() && r.disks[m.pod].due(r.Clock.Now()) {
			if err := r.lookAtDisk(ctx, namespace, m); err != nil {
				ctrl.LoggerFrom(ctx).Info("The latency of a disk is not known", "member", m.pod, "because", err.Error())
			}
		}
	}
}

func (r *Reconciler) lookAtDisk(ctx context.Context, namespace string, m *member) error {
	ctx, cancel := context.WithTimeout(ctx, r.AnswerTimeout)
	defer cancel()
	families, err := r.Scrape(ctx, namespace, m.clientURL)
	if err != nil {
		return err
	}
	read := readFsyncs(families)
	if read == nil {
		return fmt.Errorf("%s has no metric %s", m.clientURL, fsyncFamily)
	}
	r.disks[m.pod].take(r.Clock.Now(), read)
	return nil
}
