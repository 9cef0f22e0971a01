// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/tlsprofile"
)

const (
	configDir = "/etc/etcd/config"
	// configAnnotation restarts members when their configuration changes. It leaves out how a member joins: running
	// members have joined already.
	configAnnotation = "hypershift.openshift.io/etcd-config-hash"
)

// settings are the keys of etcd's configuration file that the operator sets. They are named like its flags.
type settings struct {
	Name                     string   `json:"name"`
	DataDir                  string   `json:"data-dir"`
	InitialCluster           string   `json:"initial-cluster"`
	InitialClusterState      string   `json:"initial-cluster-state"`
	InitialClusterToken      string   `json:"initial-cluster-token"`
	InitialAdvertisePeerURLs string   `json:"initial-advertise-peer-urls"`
	AdvertiseClientURLs      string   `json:"advertise-client-urls"`
	ListenPeerURLs           string   `json:"listen-peer-urls"`
	ListenClientURLs         string   `json:"listen-client-urls"`
	ListenMetricsURLs        string   `json:"listen-metrics-urls"`
	ClientTransport          security `json:"client-transport-security"`
	PeerTransport            security `json:"peer-transport-security"`
	QuotaBackendBytes        int64    `json:"quota-backend-bytes"`
	SnapshotCount            int      `json:"snapshot-count"`
	// InitialCorruptCheck keeps a member from serving when its data differs from that of the others. CompactHashCheck
	// makes the leader compare the data of all members after each compaction. Etcd 3.5 and 3.6 know them by these names;
	// 3.7 ignores them.
	InitialCorruptCheck bool     `json:"experimental-initial-corrupt-check"`
	CompactHashCheck    bool     `json:"experimental-compact-hash-check-enabled"`
	TLSMinVersion       string   `json:"tls-min-version"`
	CipherSuites        []string `json:"cipher-suites,omitempty"`
}

type security struct {
	CertFile       string `json:"cert-file"`
	KeyFile        string `json:"key-file"`
	TrustedCAFile  string `json:"trusted-ca-file"`
	ClientCertAuth bool   `json:"client-cert-auth"`
}

// PeerURL returns the URL at which the other members reach the member of a pod.
func PeerURL(namespace, pod string) string { return "https://" + host(namespace, pod) + ":2380" }

// ClientURL returns the URL at which clients in a hosted namespace reach the member of a pod, and no other member.
func ClientURL(namespace, pod string) string { return "https://" + host(namespace, pod) + ":2379" }

func host(namespace, pod string) string {
	return fmt.Sprintf("%s.etcd-discovery.%s.svc", pod, namespace)
}

// Pods returns the pod names of the members of a control plane.
func Pods(hcp *hyperv1.HostedControlPlane) []string {
	var pods []string
	for i := range New().Replicas(hcp) {
		pods = append(pods, fmt.Sprintf("%s-%d", Name, i))
	}
	return pods
}

func adaptConfig(ctx context.Context, scope *component.Scope, cm *corev1.ConfigMap) error {
	notes, err := ReadNotes(ctx, scope.Client, scope.HCP.Namespace)
	if err != nil {
		return err
	}
	quota, err := readQuota(ctx, scope.Client, scope.HCP)
	if err != nil {
		return err
	}
	cm.Data = map[string]string{}
	for _, pod := range Pods(scope.HCP) {
		text, err := yaml.Marshal(Settings(scope.HCP, pod, notes[pod].Stage, quota))
		if err != nil {
			return fmt.Errorf("writing the configuration of etcd member %s: %w", pod, err)
		}
		cm.Data[pod+".yaml"] = string(text)
	}
	return nil
}

// configHash returns a hash of the settings that all members share. It ignores the name and the stage of a member.
func configHash(hcp *hyperv1.HostedControlPlane, quota int64) (string, error) {
	text, err := yaml.Marshal(Settings(hcp, Name, "", quota))
	if err != nil {
		return "", fmt.Errorf("writing the configuration of etcd: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:16], nil
}

// Settings returns a member's configuration. Its stage decides how the member may join. A member that started once
// never starts again without its data. Without the votes that it has cast, it could undo what the cluster has
// acknowledged. It therefore gets no peers: etcd fails to start without both data and peers.
func Settings(hcp *hyperv1.HostedControlPlane, pod string, stage Stage, quota int64) any {
	tls := tlsprofile.Of(hcp)
	pods, state := Pods(hcp), "existing"
	switch stage {
	case Started:
		pods = []string{pod}
	case Joining:
	default:
		state = "new"
	}
	var cluster []string
	for _, p := range pods {
		cluster = append(cluster, p+"="+PeerURL(hcp.Namespace, p))
	}
	return settings{
		Name: pod, DataDir: DataDir,
		InitialCluster: strings.Join(cluster, ","), InitialClusterState: state, InitialClusterToken: hcp.Namespace,
		InitialAdvertisePeerURLs: PeerURL(hcp.Namespace, pod), AdvertiseClientURLs: ClientURL(hcp.Namespace, pod),
		ListenPeerURLs: "https://0.0.0.0:2380", ListenClientURLs: "https://0.0.0.0:2379",
		// The kubelet has no client certificate for its probes. Health and metrics are therefore served without one; they
		// contain no stored data.
		ListenMetricsURLs: "http://0.0.0.0:2381",
		ClientTransport:   transport("server"), PeerTransport: transport("peer"),
		QuotaBackendBytes: quota, SnapshotCount: 10000,
		InitialCorruptCheck: true, CompactHashCheck: true,
		TLSMinVersion: tls.EtcdMinVersion(), CipherSuites: tls.Ciphers,
	}
}

func transport(name string) security {
	return security{
		CertFile: fmt.Sprintf("%s/%s/%s.crt", certDir, name, name), KeyFile: fmt.Sprintf("%s/%s/%s.key", certDir, name, name),
		TrustedCAFile: certDir + "/etcd-ca/ca.crt", ClientCertAuth: true,
	}
}

// NotesConfigMap is where the etcd controller stores the stage of each member.
const NotesConfigMap = "etcd-members"

// Stage is the progress of a member in joining its cluster. The zero value means that the cluster is being formed.
type Stage string

const (
	// Joining is a member without data whose predecessor was removed from the cluster.
	Joining Stage = "Joining"
	// Started is a member that has answered and has its data on the volume.
	Started Stage = "Started"
)

// Note is the stored state of a member.
type Note struct {
	Stage Stage
	// Volume is the UID of the claim with the member's data; empty unless the member started.
	Volume string
}

// ReadNotes returns the notes of a hosted namespace by pod; empty if there are none.
func ReadNotes(ctx context.Context, reader client.Reader, namespace string) (map[string]Note, error) {
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: NotesConfigMap}
	if err := client.IgnoreNotFound(hosted.ReadTrusted(ctx, reader, key, cm)); err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	notes := map[string]Note{}
	for pod, text := range cm.Data {
		stage, volume, _ := strings.Cut(text, " ")
		notes[pod] = Note{Stage: Stage(stage), Volume: volume}
	}
	return notes, nil
}

// String formats the note for ReadNotes.
func (n Note) String() string { return strings.TrimSpace(string(n.Stage) + " " + n.Volume) }
