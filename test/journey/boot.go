// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/registry"
)

// Boot holds the costs of the first boot of a pool's machines: the maximum of each figure.
type Boot struct {
	// Image is the image that MAAS deployed.
	Image string
	// UserData is the size of the user-data in MAAS, in bytes.
	UserData int
	// Took is the time from Deployed until the Node is Ready, in complete seconds.
	Took time.Duration
	// Pulled is the number of bytes that the registry has served to the machine's address.
	Pulled int64
}

// MeasureBoot measures the first boot of the machines of a cluster's first pool. Its nodes must be Ready, and no other
// machine may have had their addresses before.
func (w *Walker) MeasureBoot(ctx context.Context, cluster string) (Boot, error) {
	c, err := w.Management()
	if err != nil {
		return Boot{}, err
	}
	machines, err := Machines(ctx, c, cluster, cluster)
	if err != nil {
		return Boot{}, err
	}
	guest, err := w.GuestClient(cluster)
	if err != nil {
		return Boot{}, err
	}
	rows, err := w.rows(ctx)
	if err != nil {
		return Boot{}, err
	}
	served, err := w.served(ctx)
	if err != nil {
		return Boot{}, err
	}
	boot := Boot{}
	for _, m := range machines {
		row := rows[*m.Spec.SystemID]
		boot.Image, boot.UserData = row.Image, max(boot.UserData, row.UserData)
		for _, address := range row.IPs {
			boot.Pulled = max(boot.Pulled, served[address])
		}
		took, err := w.fromDeployedToReady(ctx, guest, m)
		if err != nil {
			return Boot{}, err
		}
		boot.Took = max(boot.Took, took)
	}
	return boot, nil
}

// fromDeployedToReady returns the time from MAAS's event to the node's transition.
func (w *Walker) fromDeployedToReady(ctx context.Context, guest client.Client, m infrav1.MaasMachine) (time.Duration, error) {
	node := &corev1.Node{}
	if err := guest.Get(ctx, client.ObjectKey{Name: *m.Status.Hostname}, node); err != nil {
		return 0, fmt.Errorf("checking the node of machine %s: %w", m.Name, err)
	}
	deployed, err := w.deployed(ctx, *m.Spec.SystemID)
	if err != nil {
		return 0, err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.LastTransitionTime.Sub(deployed), nil
		}
	}
	return 0, fmt.Errorf("node %s has no Ready condition", node.Name)
}

// deployed returns when MAAS last set a machine to Deployed.
func (w *Walker) deployed(ctx context.Context, systemID string) (time.Time, error) {
	m, err := w.MAAS()
	if err != nil {
		return time.Time{}, err
	}
	page, err := m.ListEvents(ctx, maas.EventFilter{SystemIDs: []string{systemID}})
	if err != nil {
		return time.Time{}, err
	}
	for _, event := range page.Events {
		if event.Type == "Deployed" {
			return time.Parse("Mon, 02 Jan. 2006 15:04:05", event.Created)
		}
	}
	return time.Time{}, fmt.Errorf("MAAS has no event of the deployment of machine %s", systemID)
}

// row is a machine, as the simulated MAAS reports it on its admin port.
type row struct {
	SystemID string   `json:"system_id"`
	Image    string   `json:"image"`
	IPs      []string `json:"ips"`
	UserData int      `json:"user_data_bytes"`
}

// rows returns the rows of all machines, by system ID.
func (w *Walker) rows(ctx context.Context) (map[string]row, error) {
	var all []row
	if err := readJSON(ctx, http.DefaultClient, "http://"+env.MAASAdmin+"/machines", &all); err != nil {
		return nil, err
	}
	byID := map[string]row{}
	for _, r := range all {
		byID[r.SystemID] = r
	}
	return byID, nil
}

// served returns the number of bytes that the registry has served, by address.
func (w *Walker) served(ctx context.Context) (map[string]int64, error) {
	ca, err := os.ReadFile(w.environment().RegistryCA())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	bytes := map[string]int64{}
	return bytes, readJSON(ctx, &http.Client{Transport: transport}, "https://"+env.Registry+registry.TrafficPath, &bytes)
}

func readJSON(ctx context.Context, c *http.Client, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := c.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, strings.TrimSpace(answer.Status))
	}
	return json.NewDecoder(answer.Body).Decode(into)
}
