// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"regexp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/nodeinput"
)

// Streams of RHEL CoreOS.
const (
	streamRHEL9  = "rhel-9"
	streamRHEL10 = "rhel-10"
)

// chooseStream is the stream that the payload makes nodes of; empty with one that has a single stream, so that its pools keep their
// hash. RHEL 10 has no runc, so a pool that asks for runc stays with RHEL 9 (openshift/hypershift hypershift-operator nodepool/stream.go, 2026).
func (s *scope) chooseStream(documents []string) (string, error) {
	wanted := ""
	if s.pool.Spec.OSImageStream != nil {
		wanted = s.pool.Spec.OSImageStream.Name
	}
	if streams := s.distribution().OSStreams; !release.AtLeast(s.release.Version(), streams) { // Nothing is at least none.
		if wanted == streamRHEL10 && s.distribution().OwnOperators {
			return "", fmt.Errorf("spec.osImageStream.name is %s, which needs OpenShift %s or newer, and the release is %s: set %s, or choose a newer release",
				wanted, streams, s.release.Version(), streamRHEL9)
		}
		return "", nil
	}
	runc := nodeinput.UsesRunc(documents)
	switch {
	case wanted == streamRHEL10 && runc:
		return "", fmt.Errorf("spec.osImageStream.name is %s, which has no runc, and a ContainerRuntimeConfig of spec.config sets defaultRuntime runc: change one of them", wanted)
	case wanted != "":
		return wanted, nil
	case runc:
		return streamRHEL9, nil
	}
	return streamRHEL10, nil
}

// coreOS is how a node calls its operating system: Red Hat Enterprise Linux CoreOS 9.6.20260101-0, and before 4.19 418.94.202501010000-0.
var coreOS = regexp.MustCompile(`CoreOS (?:(9|10)\.|4\d\d\.(9)\d\.)`)

// osStream is the stream that most nodes of a pool run; nil while none tells.
func osStream(machines []*clusterv1.Machine) *hyperv1.OSImageStreamReference {
	count := map[string]int{}
	for _, machine := range machines {
		if machine.Status.NodeInfo == nil {
			continue
		}
		if major := coreOS.FindStringSubmatch(machine.Status.NodeInfo.OSImage); major != nil {
			count["rhel-"+major[1]+major[2]]++
		}
	}
	switch nine, ten := count[streamRHEL9], count[streamRHEL10]; {
	case nine == 0 && ten == 0:
		return nil
	case nine >= ten:
		return &hyperv1.OSImageStreamReference{Name: streamRHEL9}
	}
	return &hyperv1.OSImageStreamReference{Name: streamRHEL10}
}
