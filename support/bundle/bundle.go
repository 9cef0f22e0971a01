// SPDX-License-Identifier: Apache-2.0

// Package bundle is the file that a backup of a hosted control plane is: a snapshot of etcd, and the keys without which it is of
// no use, encrypted as one. It is made of formats that others read too, so that a backup outlives this program:
//
//	age ( gzip ( tar ( header.json, secrets.json, objects.json, signature.json, snapshot.db ) ) )
//
// `age --decrypt -i key.txt FILE | tar -xz` takes it apart. secrets.json and objects.json are Lists that kubectl reads.
//
// A restorer may rely on this: what Open returns is as its writer wrote it, and Contents.Verify tells who that was.
// Entries come in this order, and the snapshot is whole and unaltered once its reader has said io.EOF, and not
// before. A later Format is refused; unknown fields and entries before the snapshot are left out.
package bundle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Format is the version of the format that Write writes, and the highest that Open reads.
const Format = 1

// Extension is how the name of a bundle ends.
const Extension = ".tar.gz.age"

// The entries of the archive.
const (
	headerEntry  = "header.json"
	secretsEntry = "secrets.json"
	objectsEntry = "objects.json"
	// signatureEntry is not in bundles of release 0.1.0, which skips it when it reads ours.
	signatureEntry = "signature.json"
	snapshotEntry  = "snapshot.db"
)

// Header says what a bundle is a backup of. Who made the bundle made it: see Contents.Verify.
type Header struct {
	// Format is the version of the format; Write sets it.
	Format int `json:"format"`
	// Created is when the snapshot was taken.
	Created time.Time `json:"created"`
	// Name and Namespace are those of the HostedCluster; HostedNamespace is where its control plane ran.
	Name            string `json:"name"`
	Namespace       string `json:"namespace"`
	HostedNamespace string `json:"hostedNamespace"`
	// InfraID and ClusterID are those of the HostedCluster's spec.
	InfraID   string `json:"infraID"`
	ClusterID string `json:"clusterID,omitempty"`
	// ReleaseImage is the payload that the control plane ran, and KubernetesVersion its version; empty if nobody knew yet.
	ReleaseImage      string `json:"releaseImage"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// APIServer is where nodes and clients reach the API server, as host:port; empty if it was not known.
	APIServer string `json:"apiServer,omitempty"`
	// Snapshot is about the snapshot of etcd.
	Snapshot Snapshot `json:"snapshot"`
}

// Snapshot is about a snapshot of etcd.
type Snapshot struct {
	// EtcdVersion is the version of the member that the snapshot was taken of. One of the same minor version can be restored from it.
	EtcdVersion string `json:"etcdVersion"`
	// Revision is the newest that the snapshot has. An API server must never see a lower one again: restore with a bumped revision.
	Revision int64 `json:"revision"`
	// Keys is how many keys it has, those of older revisions too.
	Keys int `json:"keys"`
	// Size is in bytes, and SHA256 the hexadecimal checksum, of the snapshot as etcd sent it; etcd's own checksum is at its end.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Contents is all of a bundle but the snapshot.
type Contents struct {
	Header Header
	// Secrets are those of the hosted namespace without which the snapshot is of no use: the CAs that nodes and clients trust, the keys of
	// service account tokens, the keys that encrypt Secrets in etcd. They have names, types and data, and no namespace.
	Secrets []corev1.Secret
	// Objects are others that a restorer has use for: the HostedControlPlane, Machines and what the platform knows of them, as they were,
	// with their UIDs and status.
	Objects []unstructured.Unstructured

	// Set by Open: the signature, nil if the bundle has none, and the digest of what it covers.
	signature *Signature
	sum       digest
}

// Secret is the Secret of a name; nil if the bundle has none.
func (c Contents) Secret(name string) *corev1.Secret {
	for i := range c.Secrets {
		if c.Secrets[i].Name == name {
			return &c.Secrets[i]
		}
	}
	return nil
}
