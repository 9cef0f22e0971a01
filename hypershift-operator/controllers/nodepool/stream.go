// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseversion"
	"github.com/openshift/hypershift/support/upsert"
)

// Streams of RHEL CoreOS.
const (
	streamRHEL9  = "rhel-9"
	streamRHEL10 = "rhel-10"
)

// streamsGate is the feature gate with which a machine-config operator installs the configured stream. In hosted
// clusters the default feature set of 5.0 and 5.1 does not have it (openshift/api features, August 2026).
const streamsGate = "OSStreams"

// chooseStream returns the stream from which the payload creates nodes. It returns an empty string for a payload with a
// single stream, so that the pools of such a payload keep their hash. The pool's field takes precedence, then the
// stream that was chosen before, then firstStream.
func (s *reconciliation) chooseStream(documents []string) (string, error) {
	explicit := ""
	if s.Pool.Spec.OSImageStream != nil {
		explicit = s.Pool.Spec.OSImageStream.Name
	}
	streams := s.Distribution().OSStreams
	if !releaseversion.AtLeast(s.Release.Version(), streams) { // No version is at least "".
		if explicit == streamRHEL10 && s.Distribution().OwnOperators {
			return "", fmt.Errorf("spec.osImageStream.name is %s, which needs OpenShift %s or newer, and the release is %s: "+
				"set %s, or choose a newer release", explicit, streams, s.Release.Version(), streamRHEL9)
		}
		return "", nil
	}
	runc := nodeinput.UsesRunc(documents)
	switch kept := s.Pool.Annotations[hyperv1.NodePoolOSImageStreamAnnotation]; {
	case explicit == streamRHEL10 && runc:
		return "", fmt.Errorf("spec.osImageStream.name is %s, which has no runc, and a ContainerRuntimeConfig of "+
			"spec.config sets defaultRuntime runc: change one of them", explicit)
	case explicit == streamRHEL9 && kept == streamRHEL10 && s.InPlace() && len(s.Machines) > 0:
		return "", fmt.Errorf("spec.osImageStream.name is %s, but the nodes run %s, and an in-place update cannot return "+
			"to the older stream; create another NodePool", explicit, kept)
	case explicit != "":
		return explicit, nil
	case kept == streamRHEL10 && runc:
		return "", errors.New("the nodes run rhel-10, which has no runc, and a ContainerRuntimeConfig of spec.config " +
			"sets defaultRuntime runc: remove that, or create another NodePool")
	case kept == streamRHEL9, kept == streamRHEL10:
		return kept, nil
	}
	return s.firstStream(runc)
}

// firstStream returns the stream of a pool for which none was chosen. It is the stream that 0.1.0 configured the nodes
// for, or else the one that they run, or else the release's default. A rollout that has begun continues, since RHEL 10
// cannot be reverted to RHEL 9 in place.
func (s *reconciliation) firstStream(runc bool) (string, error) {
	if runc {
		return streamRHEL9, nil // RHEL 10 has no runc.
	}
	began, err := s.configuredFor(streamRHEL10)
	if err != nil {
		return "", err
	}
	nine, ten := countStreams(s.Machines)
	status := s.Pool.Status
	switch {
	case began, ten > 0:
		return streamRHEL10, nil
	case nine > 0:
		return streamRHEL9, nil
	case status.OSImageStream != nil:
		return status.OSImageStream.Name, nil
	case status.Version != "" && !releaseversion.AtLeast(status.Version, s.Distribution().OSStreams):
		return streamRHEL9, nil // The pool's previous nodes, of which none is left, ran a release with this stream only.
	case s.installsStreams():
		return streamRHEL10, nil
	}
	return streamRHEL9, nil
}

// configuredFor reports whether the pool, or one of its machines, has the configuration that this reconcile renders
// with a stream.
func (s *reconciliation) configuredFor(stream string) (bool, error) {
	hash, _, err := s.hashes(stream)
	if err != nil {
		return false, err
	}
	return s.hasConfig(hash), nil
}

// hasConfig reports whether the pool, or one of its machines, has the configuration with the given hash.
func (s *reconciliation) hasConfig(hash string) bool {
	if s.Pool.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] == hash {
		return true
	}
	return slices.ContainsFunc(s.Machines, func(machine *clusterv1.Machine) bool {
		_, of := s.ParseSecretName(ptr.Deref(machine.Spec.Bootstrap.DataSecretName, ""))
		return of == hash
	})
}

// installsStreams reports whether the release's machine-config operator installs the configured stream. If not, it
// installs only the oldest one.
func (s *reconciliation) installsStreams() bool {
	if s.HC.Spec.Configuration == nil || s.HC.Spec.Configuration.FeatureGate == nil {
		return false
	}
	switch gates := s.HC.Spec.Configuration.FeatureGate; gates.FeatureSet {
	case configv1.TechPreviewNoUpgrade, configv1.DevPreviewNoUpgrade:
		return true
	case configv1.CustomNoUpgrade:
		return gates.CustomNoUpgrade != nil &&
			slices.Contains(gates.CustomNoUpgrade.Enabled, configv1.FeatureGateName(streamsGate))
	}
	return false
}

// keepStream records the stream of the pool's nodes.
func (r *Reconciler) keepStream(ctx context.Context, s *reconciliation) error {
	if s.Pool.Annotations[hyperv1.NodePoolOSImageStreamAnnotation] == s.Stream {
		return nil
	}
	return upsert.Patch(ctx, r.Client, s.Pool, func() {
		scope.Annotate(s.Pool, hyperv1.NodePoolOSImageStreamAnnotation, s.Stream)
	})
}

// coreOS matches the operating system that a node reports, such as Red Hat Enterprise Linux CoreOS 9.6.20260101-0, or
// 418.94.202501010000-0 before 4.19.
var coreOS = regexp.MustCompile(`CoreOS (?:(9|10)\.|4\d\d\.(9)\d\.)`)

// countStreams returns how many nodes report each stream.
func countStreams(machines []*clusterv1.Machine) (nine, ten int) {
	for _, machine := range machines {
		if machine.Status.NodeInfo == nil {
			continue
		}
		switch major := coreOS.FindStringSubmatch(machine.Status.NodeInfo.OSImage); {
		case major == nil:
		case "rhel-"+major[1]+major[2] == streamRHEL10:
			ten++
		default:
			nine++
		}
	}
	return nine, ten
}

// osStream returns the stream that most nodes of a pool run; nil if no node reports one.
func osStream(machines []*clusterv1.Machine) *hyperv1.OSImageStreamReference {
	switch nine, ten := countStreams(machines); {
	case nine == 0 && ten == 0:
		return nil
	case nine >= ten:
		return &hyperv1.OSImageStreamReference{Name: streamRHEL9}
	}
	return &hyperv1.OSImageStreamReference{Name: streamRHEL10}
}
