// SPDX-License-Identifier: Apache-2.0

// Package platform lists all platforms of the commands. A platform is a folder below this one, and an entry here.
package platform

import (
	"github.com/openshift/hypershift/cmd/capacity"
	"github.com/openshift/hypershift/cmd/cluster"
	"github.com/openshift/hypershift/cmd/console"
	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/cmd/install"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/cmd/nodepool"
	"github.com/openshift/hypershift/cmd/platform/agent"
	"github.com/openshift/hypershift/cmd/platform/aws"
	"github.com/openshift/hypershift/cmd/platform/kubevirt"
	"github.com/openshift/hypershift/cmd/platform/maas"
	"github.com/openshift/hypershift/cmd/platform/none"
)

// Platform creates what one platform adds to the commands. Each program gets new values.
type Platform struct {
	// Cluster creates the platform's part of `create cluster`, and NodePool its part of `create nodepool`.
	Cluster  func() cluster.Platform
	NodePool func() nodepool.Platform
	// Install creates the platform's part of `install`; nil if it has none.
	Install func() install.Part
	// Doctor creates the platform's part of `doctor`; nil if it has none.
	Doctor func() doctor.Part
	// Hardware reads the platform's machines; nil if the platform reports none.
	Hardware look.HardwareReader
	// Developer platforms are available in hypershift only, not in hcp.
	Developer bool
}

// All returns the platforms, in display order.
func All() []Platform {
	return []Platform{
		{
			Cluster: func() cluster.Platform { return maas.NewCluster() }, NodePool: func() nodepool.Platform { return &maas.NodePool{} },
			Install: maas.NewInstall, Doctor: maas.NewDoctor, Hardware: maas.Hardware{},
		},
		{Cluster: func() cluster.Platform { return &agent.Cluster{} }, NodePool: func() nodepool.Platform { return &agent.NodePool{} }},
		{Cluster: func() cluster.Platform { return &kubevirt.Cluster{} }, NodePool: func() nodepool.Platform { return &kubevirt.NodePool{} },
			Install: kubevirt.NewInstall},
		{Cluster: func() cluster.Platform { return &aws.Cluster{} }, NodePool: func() nodepool.Platform { return &aws.NodePool{} },
			Install: func() install.Part { return &aws.Install{} }},
		{Cluster: func() cluster.Platform { return &none.Cluster{} }, NodePool: func() nodepool.Platform { return &none.NodePool{} }, Developer: true},
	}
}

// InstallParts returns the install part of each platform that has one.
func InstallParts() []install.Part {
	var parts []install.Part
	for _, p := range All() {
		if p.Install != nil {
			parts = append(parts, p.Install())
		}
	}
	return parts
}

// DoctorParts returns the part of `doctor` of each platform that has one.
func DoctorParts() []doctor.Part {
	var parts []doctor.Part
	for _, p := range All() {
		if p.Doctor != nil {
			parts = append(parts, p.Doctor())
		}
	}
	return parts
}

// Capacity returns the part of `capacity` of the one platform that has a site of machines.
func Capacity() capacity.Part { return maas.NewCapacity() }

// Console returns the platform's part of `console`.
func Console() console.Part { return maas.NewConsole() }

// Hardware returns the reader of each platform's machines.
func Hardware() []look.HardwareReader {
	var readers []look.HardwareReader
	for _, p := range All() {
		if p.Hardware != nil {
			readers = append(readers, p.Hardware)
		}
	}
	return readers
}
