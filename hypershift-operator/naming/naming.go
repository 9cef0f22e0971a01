// SPDX-License-Identifier: Apache-2.0

// Package naming derives the names and hashes that both controllers, the payload's own operators and the
// ignition-server share. They are a wire format: a change would roll out or orphan existing objects.
package naming

import (
	"fmt"
	"strings"

	utilrand "k8s.io/apimachinery/pkg/util/rand"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/nodeinput"
)

// Names of objects in a hosted namespace.
const (
	PullSecret       = hosted.PullSecret
	SSHKey           = "ssh-key"
	TrustBundle      = hosted.UserCABundle
	TrustBundleKey   = hosted.UserCABundleKey
	SAKey            = hosted.ServiceAccountKey
	CAPIWebhookCert  = "capi-webhooks-tls"
	KASServingCert   = "kas-server-crt"
	IgnitionServerCA = hosted.IgnitionServerCA
)

// ControlPlaneNamespace returns the namespace of a HostedCluster's control plane.
func ControlPlaneNamespace(hc *hyperv1.HostedCluster) string {
	return ControlPlaneNamespaceOf(hc.Namespace, hc.Name)
}

// ControlPlaneNamespaceOf returns the namespace of a HostedCluster's control plane by name; the HostedCluster may not
// exist.
func ControlPlaneNamespaceOf(namespace, name string) string {
	return fmt.Sprintf("%s-%s", namespace, strings.ReplaceAll(name, ".", "-"))
}

// InfraID generates the ID of a cluster's infrastructure: the truncated name and five random characters.
func InfraID(clusterName string) string {
	const maxBase = 21
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(clusterName))
	if len(base) > maxBase {
		base = base[:maxBase]
	}
	return strings.TrimRight(base, "-") + "-" + utilrand.String(5)
}

// Join joins base and suffix with a dash. If the result exceeds limit, a hash replaces the truncated part.
func Join(base, suffix string, limit int) string {
	const hashWithDash = 9
	name := base + "-" + suffix
	if len(name) <= limit {
		return name
	}
	keep := limit - hashWithDash - 1 - len(suffix)
	if keep >= 0 {
		return cut(base, keep) + "-" + Hash(base) + "-" + suffix
	}
	return cut(base, limit-hashWithDash) + "-" + Hash(name)
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit]
}

// Hash returns the FNV-1a hash of a text as 8 hex digits.
func Hash(text string) string { return nodeinput.Hash(text) }

// HashValue returns the Hash of a value's default text form. Bytes are formatted as a list of decimal numbers, as in
// the ignition-server.
func HashValue(value any) string { return nodeinput.HashValue(value) }
