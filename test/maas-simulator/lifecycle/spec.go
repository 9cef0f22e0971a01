// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// spec returns the current description of a machine for the boot backend.
func (l *Life) spec(systemID string) (spec boot.Spec, err error) {
	err = l.DB.View(func() error {
		m := l.DB.Machines.Get(systemID)
		if m == nil {
			return fmt.Errorf("machine %s is gone", systemID)
		}
		spec = boot.Spec{
			SystemID: m.SystemID, Hostname: m.Hostname, MetadataURL: l.MetadataURL,
			ConsumerKey: m.Token.Consumer, TokenKey: m.Token.Key, TokenSecret: m.Token.Secret,
			OSystem: m.OSystem, Series: m.Series, Architecture: m.Architecture, Ephemeral: m.Ephemeral,
			CPUs: m.CPUCount, MemoryMiB: m.Memory, Addresses: (&render.Printer{DB: l.DB}).Prefixes(m),
		}
		if d := l.DB.Domains.Get(m.DomainID); d != nil {
			spec.Domain = d.Name
		}
		if z := l.DB.Zones.Get(m.ZoneID); z != nil {
			spec.Zone = z.Name
		}
		if nic := m.BootInterface(); nic != nil {
			spec.MAC = nic.MAC
		}
		for _, d := range m.Disks {
			spec.Disks = append(spec.Disks, boot.Disk{Name: d.Name, Bytes: d.Size})
		}
		l.network(m, &spec)
		return nil
	})
	return spec, err
}

// network adds the name servers of the subnets and the gateway. The gateway is the one of the link that is set as the
// default gateway, or else of the first link whose subnet has one.
func (l *Life) network(m *inventory.Machine, spec *boot.Spec) {
	for link := range m.Links() {
		s := l.DB.Subnets.Get(*link.SubnetID)
		if s == nil {
			continue
		}
		if gateway, err := netip.ParseAddr(s.Gateway); err == nil && (link.Gateway || !spec.Gateway.IsValid()) {
			spec.Gateway = gateway
		}
		for _, server := range s.DNSServers {
			if ip, err := netip.ParseAddr(server); err == nil && !slices.Contains(spec.Nameservers, ip) {
				spec.Nameservers = append(spec.Nameservers, ip)
			}
		}
	}
}

// Fault returns the fault of the kind that hits the machine now, if any.
func (l *Life) Fault(kind faults.Kind, m *inventory.Machine) (faults.Rule, bool) {
	return l.Faults.Machine(kind, faults.Target{SystemID: m.SystemID, Hostname: m.Hostname, User: m.Owner})
}

// bmcFault is like Fault, for power actions. Only "on" can add a machine to the machines of a rule. MAAS queries
// every BMC once a minute, and these queries must not add machines.
func (l *Life) bmcFault(kind faults.Kind, m *inventory.Machine, action string) (faults.Rule, bool) {
	if action == "on" {
		return l.Fault(kind, m)
	}
	return l.Faults.Seen(kind, faults.Target{SystemID: m.SystemID, Hostname: m.Hostname, User: m.Owner})
}

// errUnheard is the error for a power action that has no effect and returns no error to MAAS.
var errUnheard = errors.New("the BMC does not answer")

// powerFault returns the error of the machine's power controller, if any.
func (l *Life) powerFault(m *inventory.Machine, action string) error {
	if _, dead := l.bmcFault(faults.DeadBMC, m, action); dead && powered(m) {
		return errUnheard
	}
	if m.VM != nil && m.VM.Away {
		return fmt.Errorf("Failed to power %s node - VM Host %d: Failed to connect to the LXD REST API.", action, *m.PodID)
	}
	if m.VM != nil && m.VM.Lost {
		return fmt.Errorf("Failed to power %s node - Pod %d: LXD VM %s not found.", action, *m.PodID, m.VM.Instance)
	}
	if rule, hit := l.bmcFault(faults.PowerError, m, action); hit {
		return fmt.Errorf("Failed to power %s node - %s", action, rule.Text("Power controller did not answer"))
	}
	return nil
}

// powerFailsCall returns the power controller's error for requests that power a machine on or off. Only MAAS 3.5 waits
// for the power controller before it responds.
func (l *Life) powerFailsCall(m *inventory.Machine, action string) error {
	if !l.Version.AtLeast(3, 5) || l.Version.AtLeast(3, 6) || !powered(m) {
		return nil
	}
	if err := l.powerFault(m, action); err != nil && !errors.Is(err, errUnheard) {
		return problem.Text(http.StatusInternalServerError, "%s", err.Error())
	}
	return nil
}

// powered reports whether MAAS can control the machine's power.
func powered(m *inventory.Machine) bool { return m.PowerType != "" && m.PowerType != "manual" }

// workPowerOn starts the installed system.
func workPowerOn(ctx context.Context, l *Life, m *inventory.Machine) error {
	if err := l.powerFault(m, "on"); err != nil {
		return err
	}
	spec, err := l.spec(m.SystemID)
	if err != nil {
		return err
	}
	if m.Status == status.Deployed {
		_, spec.Blank = l.Fault(faults.DiskEmpty, m)
	}
	if err := l.Backend.PowerOn(ctx, spec); err != nil {
		return fmt.Errorf("Failed to power on node - %w", err)
	}
	return nil
}

func workPowerOff(ctx context.Context, l *Life, m *inventory.Machine) error {
	if err := l.powerFault(m, "off"); err != nil {
		return err
	}
	if err := l.Backend.PowerOff(ctx, m.SystemID); err != nil {
		return fmt.Errorf("Failed to power off node - %w", err)
	}
	return nil
}
