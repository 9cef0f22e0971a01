// SPDX-License-Identifier: Apache-2.0

// Package bundle reads and writes backups of hosted control planes. A bundle is one encrypted file with a snapshot of
// etcd and the keys without which the snapshot is unusable. It uses formats that other programs can read, so that a
// backup outlives this program:
//
//	age ( gzip ( tar ( header.json, secrets.json, objects.json, signature.json, snapshot.db ) ) )
//
// `age --decrypt -i key.txt FILE | tar -xz` extracts it. secrets.json and objects.json are Lists that kubectl reads.
//
// A restorer can rely on the following. Open returns the contents as they were written, and Contents.Verify checks
// which management cluster wrote them. The entries come in this order. The snapshot is complete and unaltered only
// after its reader returns io.EOF. Open refuses a later Format, and ignores unknown fields and unknown entries before
// the snapshot.
package bundle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Format is the version of the format that Write writes, and the highest that Open reads.
const Format = 1

// Extension is the file name extension of a bundle.
const Extension = ".tar.gz.age"

// The names of the archive's entries.
const (
	headerEntry  = "header.json"
	secretsEntry = "secrets.json"
	objectsEntry = "objects.json"
	// Bundles of release 0.1.0 have no signatureEntry. That release ignores it in bundles of this one.
	signatureEntry = "signature.json"
	snapshotEntry  = "snapshot.db"
)

// Header describes the cluster that a bundle backs up. The writer of the bundle controls the header: see
// Contents.Verify.
type Header struct {
	// Format is the version of the format; Write sets it.
	Format int `json:"format"`
	// Created is the time at which the snapshot was taken.
	Created time.Time `json:"created"`
	// Name and Namespace identify the HostedCluster; HostedNamespace is the namespace of its control plane.
	Name            string `json:"name"`
	Namespace       string `json:"namespace"`
	HostedNamespace string `json:"hostedNamespace"`
	// InfraID and ClusterID come from the HostedCluster's spec.
	InfraID   string `json:"infraID"`
	ClusterID string `json:"clusterID,omitempty"`
	// ReleaseImage is the release payload of the control plane. KubernetesVersion is its Kubernetes version; empty if it
	// was not known yet.
	ReleaseImage      string `json:"releaseImage"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// APIServer is the address at which nodes and clients reach the API server, as host:port; empty if it was not known.
	APIServer string `json:"apiServer,omitempty"`
	// Snapshot describes the snapshot of etcd.
	Snapshot Snapshot `json:"snapshot"`
}

// Snapshot describes a snapshot of etcd.
type Snapshot struct {
	// EtcdVersion is the version of the etcd member from which the snapshot was taken. Restore it with an etcd of the same
	// minor version.
	EtcdVersion string `json:"etcdVersion"`
	// Revision is the newest revision in the snapshot. An API server must never see a lower revision again: restore with a
	// bumped revision.
	Revision int64 `json:"revision"`
	// Keys is the number of keys in the snapshot, including those of older revisions.
	Keys int `json:"keys"`
	// Size is the size in bytes, and SHA256 the hexadecimal checksum, of the snapshot as etcd sent it. The snapshot ends
	// with etcd's own checksum.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Contents is everything in a bundle except the snapshot.
type Contents struct {
	Header Header
	// Secrets are the Secrets of the hosted namespace without which the snapshot is unusable. They hold the CAs that nodes
	// and clients trust, the keys of service account tokens, and the keys that encrypt Secrets in etcd. They have names,
	// types and data, and no namespace.
	Secrets []corev1.Secret
	// Objects are other objects that a restorer uses: the HostedControlPlane, the Machines and the objects of the
	// platform. They are unchanged, with their UIDs and status.
	Objects []unstructured.Unstructured

	// Open sets signature, nil if the bundle has none, and sum, the digest of the signed entries.
	signature *Signature
	sum       digest
}

// Secret returns the Secret with the given name; nil if the bundle has none.
func (c Contents) Secret(name string) *corev1.Secret {
	for i := range c.Secrets {
		if c.Secrets[i].Name == name {
			return &c.Secrets[i]
		}
	}
	return nil
}
