// SPDX-License-Identifier: Apache-2.0

// Package lab provides the machines of fake providers: each is a machine of a simulated MAAS, which boots it.
package lab

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/standin/contract"
)

// SecretName is the name of the Secret with the MAAS credentials. The user of the fake provider creates it in the
// hosted namespace.
const SecretName = "standin-lab"

// The images of the fake provider's platform. The map below has the MAAS name of each.
const (
	// AMI is an image that reads Ignition.
	AMI = "ami-0000000000057a2d1"
	// Disk is the container disk of virtual machines; it has cloud-init.
	Disk = "quay.io/containerdisks/ubuntu:24.04"

	withIgnition, withCloudInit = "custom/kubernetes-node", "ubuntu/noble"
)

var images = map[string]string{"": withIgnition, AMI: withIgnition, "docker://" + Disk: withCloudInit}

// Lab is an Infrastructure whose machines belong to a simulated MAAS.
type Lab struct {
	// Reader reads the Secret.
	Reader client.Reader
	// Namespace is the namespace of the Secret.
	Namespace string
}

var _ contract.Infrastructure = &Lab{}

func (l *Lab) connect(ctx context.Context) (*maas.Client, error) {
	secret := &corev1.Secret{}
	if err := l.Reader.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: SecretName}, secret); err != nil {
		return nil, fmt.Errorf("reading where the machines are: %w", err)
	}
	config, err := maas.ConfigFromSecret(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("reading where the machines are in Secret %s: %w", SecretName, err)
	}
	return maas.NewClient(config)
}

// Provide implements contract.Infrastructure. The allocation stores the key, so a process that restarts finds its
// machine again.
func (l *Lab) Provide(ctx context.Context, order contract.Order) (contract.Machine, error) {
	image, known := images[order.Image]
	if !known {
		return contract.Machine{}, fmt.Errorf("there is no image %q", order.Image)
	}
	c, err := l.connect(ctx)
	if err != nil {
		return contract.Machine{}, err
	}
	defer c.CloseIdleConnections()
	m, err := held(ctx, c, order.Key)
	if err == nil && m == nil {
		m, err = c.AllocateMachine(ctx, maas.AllocateRequest{AgentName: order.Key, Comment: "for a fake provider", NotPodTypes: []string{"lxd"}})
	}
	if err == nil && m.Status == maas.StatusAllocated {
		m, err = c.DeployMachine(ctx, m.SystemID, maas.DeployRequest{DistroSeries: image, UserData: order.UserData})
	}
	if err != nil {
		return contract.Machine{}, err
	}
	return describe(m), nil
}

// held returns the machine with the key; nil if there is none.
func held(ctx context.Context, c *maas.Client, key string) (*maas.Machine, error) {
	machines, err := c.ListMachines(ctx, maas.MachineFilter{AgentNames: []string{key}})
	if err != nil || len(machines) == 0 {
		return nil, err
	}
	return &machines[0], nil
}

func describe(m *maas.Machine) contract.Machine {
	machine := contract.Machine{ID: m.SystemID, Zone: m.Zone.Name, Addresses: slices.Clone(m.IPAddresses), Running: m.Status == maas.StatusDeployed}
	for _, name := range []string{m.Hostname, m.FQDN} {
		if name != "" && !slices.Contains(machine.Names, name) {
			machine.Names = append(machine.Names, name)
		}
	}
	if m.Status == maas.StatusFailedDeployment || m.Status == maas.StatusBroken {
		machine.Failure = m.StatusName + ": " + m.StatusMessage
	}
	return machine
}

// Release implements contract.Infrastructure.
func (l *Lab) Release(ctx context.Context, key string) (gone bool, err error) {
	c, err := l.connect(ctx)
	if err != nil {
		return false, err
	}
	defer c.CloseIdleConnections()
	m, err := held(ctx, c, key)
	if err != nil || m == nil {
		return err == nil, err
	}
	_, err = c.ReleaseMachine(ctx, m.SystemID, maas.ReleaseRequest{Comment: "for a fake provider"})
	return false, err
}
