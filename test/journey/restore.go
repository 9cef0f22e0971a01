// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/devcluster/env"
)

// onDemand is the name of backups on demand, and of the objects that they need.
const onDemand = "on-demand"

// BackUp takes a backup into the environment's object store. It is encrypted for a key whose private part never reaches
// the management cluster. BackUp returns the file of the key and the URL of the backup.
func (w *Walker) BackUp(ctx context.Context, c client.Client, cluster string) (keyFile, url string, err error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return "", "", err
	}
	keyFile = w.Path("backup-key.txt")
	if err := os.WriteFile(keyFile, []byte(identity.String()+"\n"), 0o600); err != nil {
		return "", "", err
	}
	hosted, e := HostedNamespace(cluster), w.environment()
	for _, argv := range [][]string{
		{"kubectl", "create", "secret", "generic", "-n", hosted, "backup-key", "--from-literal", "recipients=" + identity.Recipient().String()},
		{"kubectl", "create", "secret", "generic", "-n", hosted, "s3", "--from-file", "credentials=" + e.StoreCredentials(), "--from-file", "ca-bundle.crt=" + e.StoreCA()},
		{"hypershift", "create", "etcd-backup", "--name", cluster, "--backup-name", onDemand, "--encryption-key", "backup-key",
			"--s3-bucket", env.Bucket, "--s3-endpoint", "https://" + env.S3, "--s3-credentials", "s3", "--wait", "--timeout", "10m"},
	} {
		if err := w.Type(ctx, argv...); err != nil {
			return "", "", err
		}
	}
	backup := &hyperv1.HCPEtcdBackup{}
	err = c.Get(ctx, client.ObjectKey{Namespace: hosted, Name: onDemand}, backup)
	return keyFile, backup.Status.SnapshotURL, err
}

// Restore restores a cluster from a backup in the environment's object store, whose credentials StoreVariable names;
// extra flags come last.
func (w *Walker) Restore(ctx context.Context, keyFile, url string, extra ...string) error {
	return w.Type(ctx, append([]string{"hypershift", "restore", "cluster", "--from", url, "--key-file", keyFile,
		"--s3-endpoint", "https://" + env.S3, "--s3-ca-file", w.environment().StoreCA(), "--wait", "--timeout", "10m"}, extra...)...)
}

// StoreVariable returns the environment variable with the object store's credentials for commands, and its value.
func (w *Walker) StoreVariable() (name, value string) {
	return "AWS_SHARED_CREDENTIALS_FILE", w.environment().StoreCredentials()
}

// Running returns the state that a restore must not change. It has machines in MAAS by their allocation, Nodes and
// the workload's pods by their UIDs, and restart counts of containers. It includes only the machines of the owners,
// which are MAAS users; without owners, it includes all machines.
func Running(ctx context.Context, m *maas.Client, guest client.Client, owners ...string) (map[string]string, error) {
	given, err := Allocated(ctx, m, owners...)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for id, m := range given {
		found["machine "+id] = m.Owner + " " + m.StatusName
	}
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	if err := guest.List(ctx, nodes); err != nil {
		return nil, err
	}
	for _, node := range nodes.Items {
		if node.Spec.ProviderID == "" {
			return nil, fmt.Errorf("node %s has no provider ID", node.Name)
		}
		found["node "+node.Name] = string(node.UID) + " " + node.Spec.ProviderID + " " + node.Status.NodeInfo.BootID
	}
	if err := guest.List(ctx, pods, client.InNamespace("default"), client.MatchingLabels{"app": workloadName}); err != nil {
		return nil, err
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || !pod.DeletionTimestamp.IsZero() {
			return nil, fmt.Errorf("pod %s comes or goes", pod.Name)
		}
		found["pod "+pod.Name] = fmt.Sprintf("%s on %s, started %d times", pod.UID, pod.Spec.NodeName, pod.Status.ContainerStatuses[0].RestartCount+1)
	}
	return found, nil
}

// Allocated maps system IDs to allocated machines. If owners are given, it returns only their machines.
func Allocated(ctx context.Context, m *maas.Client, owners ...string) (map[string]maas.Machine, error) {
	all, err := m.ListMachines(ctx, maas.MachineFilter{})
	if err != nil {
		return nil, err
	}
	given := map[string]maas.Machine{}
	for _, m := range all {
		if m.Owner != "" && (len(owners) == 0 || slices.Contains(owners, m.Owner)) {
			given[m.SystemID] = m
		}
	}
	return given, nil
}

// MAASAsked counts the requests to the simulated MAAS since the start of its counters, by operation. If users are
// given, it counts only their requests.
func MAASAsked(ctx context.Context, users ...string) (map[string]int, error) {
	var rows []struct {
		Operation string
		Count     int
	}
	asked := map[string]int{}
	err := readJSON(ctx, http.DefaultClient, "http://"+env.MAASAdmin+"/requests?"+url.Values{"user": users}.Encode(),
		&rows)
	for _, row := range rows {
		asked[row.Operation] += row.Count
	}
	return asked, err
}

// changing lists parts of the names of MAAS operations that change machines; other operations only read.
var changing = []string{"allocate", "deploy", "release", "abort", "power_on", "power_off", "annotations", "update", "delete", "compose"}

// MAASChanges counts the requests of MAASAsked that change machines.
func MAASChanges(ctx context.Context, users ...string) (map[string]int, error) {
	asked, err := MAASAsked(ctx, users...)
	maps.DeleteFunc(asked, func(operation string, _ int) bool {
		return !slices.ContainsFunc(changing, func(verb string) bool { return strings.Contains(operation, verb) })
	})
	if err == nil && len(asked) == 0 {
		err = errors.New("MAAS has no record of what installed the machines")
	}
	return asked, err
}
