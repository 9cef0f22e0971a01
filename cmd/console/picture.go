// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/capacity"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/support/health"
	"github.com/openshift/hypershift/support/terminal"
)

// Tone is the colour of a state.
type Tone string

// The tones of the page.
const (
	Good      Tone = "good"
	Attention Tone = "attention"
	Bad       Tone = "bad"
	// Spare is the tone of machines that no cluster has.
	Spare Tone = "spare"
	// Neutral is the tone of machines that clusters can neither get nor have.
	Neutral Tone = "neutral"
)

// Picture is all that the page shows. Its texts have no control characters.
type Picture struct {
	// Loading is true until the API server has answered all requests.
	Loading bool `json:"loading"`
	// Notes are sentences about what is not shown.
	Notes    []string  `json:"notes"`
	Clusters []Cluster `json:"clusters"`
	Machines []Machine `json:"machines"`
	Capacity []Need    `json:"capacity"`
}

// Cluster is a HostedCluster.
type Cluster struct {
	// Key is the namespace and name.
	Key     string `json:"key"`
	State   string `json:"state"`
	Tone    Tone   `json:"tone"`
	Version string `json:"version"`
	// Desired is the version that the cluster changes to; empty if it has it.
	Desired string   `json:"desired"`
	API     string   `json:"api"`
	Nodes   string   `json:"nodes"`
	Finding *Finding `json:"finding,omitempty"`
	Pools   []Pool   `json:"pools"`
}

// Finding is the first condition that is not as it should be.
type Finding struct {
	Text string `json:"text"`
	Tone Tone   `json:"tone"`
}

// Pool is a NodePool.
type Pool struct {
	Key     string   `json:"key"`
	State   string   `json:"state"`
	Tone    Tone     `json:"tone"`
	Nodes   string   `json:"nodes"`
	Version string   `json:"version"`
	Finding *Finding `json:"finding,omitempty"`
	// Upgrade is absent while the pool does not change its version.
	Upgrade *Upgrade `json:"upgrade,omitempty"`
}

// Upgrade counts the running machines of a NodePool that have the desired version.
type Upgrade struct {
	To    string `json:"to"`
	Done  int    `json:"done"`
	Total int    `json:"total"`
}

// Machine is a machine of a cluster, or one of the site that no cluster has.
type Machine struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Zone string `json:"zone"`
	// Pool is the resource pool of the platform; empty if it is not known.
	Pool  string `json:"pool"`
	State string `json:"state"`
	Tone  Tone   `json:"tone"`
	// Quarantined means that the provider does not allocate the machine.
	Quarantined bool `json:"quarantined"`
	// Cluster, NodePool, Machine, Infrastructure and Node name the objects of the machine; empty for spare ones.
	Cluster        string   `json:"cluster"`
	NodePool       string   `json:"nodePool"`
	Machine        string   `json:"machine"`
	Infrastructure string   `json:"infrastructure"`
	Node           string   `json:"node"`
	Version        string   `json:"version"`
	SystemID       string   `json:"systemID"`
	Owner          string   `json:"owner"`
	Tags           []string `json:"tags"`
	Finding        *Finding `json:"finding,omitempty"`
	// Link is the page of the machine in MAAS; empty if the address of MAAS is not known.
	Link string `json:"link"`
}

// Need is how many more machines a NodePool can get.
type Need struct {
	NodePool string `json:"nodePool"`
	Nodes    string `json:"nodes"`
	Fit      int    `json:"fit"`
	Reason   string `json:"reason"`
}

// site is what a Picture is made of.
type site struct {
	now      time.Time
	clusters []hyperv1.HostedCluster
	pools    []hyperv1.NodePool
	machines []look.Machine
	// reports has the machines of MAAS by the key of the cluster that read them.
	reports map[string]*capacity.Report
	// quarantined has the system IDs by the key of the cluster that quarantined the machines.
	quarantined map[string]map[string]bool
	link        func(endpoint, systemID string) string
}

func (s *site) picture() *Picture {
	p := &Picture{Notes: []string{}, Clusters: []Cluster{}, Machines: []Machine{}, Capacity: []Need{}}
	for i := range s.clusters {
		p.Clusters = append(p.Clusters, s.cluster(&s.clusters[i]))
	}
	shown := map[string]bool{}
	for i := range s.machines {
		p.Machines = append(p.Machines, s.machine(&s.machines[i], shown))
	}
	p.Machines = append(p.Machines, s.spares(shown)...)
	slices.SortFunc(p.Machines, func(a, b Machine) int {
		// Machines whose zone is not known are last.
		if (a.Zone == "") != (b.Zone == "") {
			return strings.Compare(b.Zone, a.Zone)
		}
		return cmp.Or(strings.Compare(a.Zone, b.Zone), strings.Compare(a.Pool, b.Pool),
			strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	for i := range s.clusters {
		report := s.reports[client.ObjectKeyFromObject(&s.clusters[i]).String()]
		if report == nil {
			continue
		}
		for _, need := range report.Needs {
			p.Capacity = append(p.Capacity, Need{
				NodePool: terminal.Line(need.NodePool), Nodes: need.Nodes, Fit: need.Fit, Reason: terminal.Line(need.Reason),
			})
		}
	}
	return p
}

func (s *site) cluster(hc *hyperv1.HostedCluster) Cluster {
	state, finding := look.StateOfCluster(hc), look.FindingOfCluster(hc)
	c := Cluster{
		Key: client.ObjectKeyFromObject(hc).String(), State: string(state), Tone: tone(state, finding),
		Version: terminal.Line(look.CompletedVersion(hc)), API: terminal.Line(look.Endpoint(hc)),
		Finding: s.finding(finding), Pools: []Pool{},
	}
	if desired := look.DesiredVersion(hc); desired != look.CompletedVersion(hc) {
		c.Desired = terminal.Line(desired)
	}
	var own []hyperv1.NodePool
	for i := range s.pools {
		if pool := &s.pools[i]; pool.Namespace == hc.Namespace && pool.Spec.ClusterName == hc.Name {
			own = append(own, *pool)
			c.Pools = append(c.Pools, s.pool(pool, look.DesiredVersion(hc)))
		}
	}
	c.Nodes = look.SumOfNodes(own)
	return c
}

func (s *site) pool(pool *hyperv1.NodePool, desired string) Pool {
	state, finding := look.StateOfNodePool(pool), look.FindingOfNodePool(pool)
	key := client.ObjectKeyFromObject(pool)
	p := Pool{
		Key: key.String(), State: string(state), Tone: tone(state, finding), Nodes: look.Nodes(pool),
		Version: terminal.Line(pool.Status.Version), Finding: s.finding(finding),
	}
	if !look.Updates(pool) || desired == "" || desired == pool.Status.Version {
		return p
	}
	p.Upgrade = &Upgrade{To: terminal.Line(desired)}
	for i := range s.machines {
		m := &s.machines[i]
		if m.NodePool != key || !m.DeletionTimestamp.IsZero() {
			continue
		}
		p.Upgrade.Total++
		if sameVersion(m.Spec.Version, desired) && clusterv1.MachinePhase(m.Status.Phase) == clusterv1.MachinePhaseRunning {
			p.Upgrade.Done++
		}
	}
	return p
}

// sameVersion compares versions with and without the prefix v.
func sameVersion(a, b string) bool { return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v") }

func (s *site) machine(m *look.Machine, shown map[string]bool) Machine {
	state, cause := look.StateOfMachine(m), m.Cause()
	found := Machine{
		ID: client.ObjectKeyFromObject(&m.Machine).String(), Name: m.Name, Zone: terminal.Line(m.Zone()),
		State: terminal.Line(string(state)), Tone: tone(state, cause), Cluster: m.HostedCluster.String(),
		NodePool: terminal.Line(m.NodePool.String()), Machine: client.ObjectKeyFromObject(&m.Machine).String(),
		Node: terminal.Line(m.Status.NodeRef.Name), Version: terminal.Line(m.Spec.Version),
		Finding: s.finding(cause), Tags: []string{},
	}
	h := m.Hardware
	if h == nil {
		return found
	}
	found.Infrastructure = terminal.Line(h.Kind + " " + h.Namespace + "/" + h.Name)
	found.SystemID, found.Pool = terminal.Line(h.ID), terminal.Line(h.Pool)
	found.Name = terminal.Line(cmp.Or(h.Host, m.Name))
	cluster := m.HostedCluster.String()
	found.Quarantined = s.quarantined[cluster][h.ID]
	report := s.reports[cluster]
	if report == nil || h.ID == "" {
		return found
	}
	found.Link = s.link(report.Endpoint, h.ID)
	shown[report.Endpoint+"\x00"+h.ID] = true
	for i := range report.Machines {
		if inMAAS := &report.Machines[i]; inMAAS.SystemID == h.ID {
			found.Pool, found.Tags = terminal.Line(inMAAS.Pool), lines(inMAAS.Tags)
			found.Quarantined = found.Quarantined || inMAAS.State == capacity.Quarantined
		}
	}
	return found
}

// spares returns the machines that no cluster of the picture has. A machine that several clusters can get is returned
// once. Machines that clusters have quarantined are returned even if MAAS cannot be read.
func (s *site) spares(shown map[string]bool) []Machine {
	at := map[string]int{}
	var all []Machine
	for i := range s.clusters {
		cluster := client.ObjectKeyFromObject(&s.clusters[i]).String()
		report := s.reports[cluster]
		if report == nil {
			all = append(all, s.unread(cluster)...)
			continue
		}
		for j := range report.Machines {
			m := &report.Machines[j]
			id := report.Endpoint + "\x00" + m.SystemID
			if shown[id] {
				continue
			}
			// The machine may fit another cluster only, or be quarantined by it.
			if known, ok := at[id]; ok {
				if m.State == capacity.Quarantined || all[known].Tone == Neutral && m.State == capacity.Fit {
					all[known] = s.spare(report.Endpoint, m)
				}
				continue
			}
			at[id] = len(all)
			all = append(all, s.spare(report.Endpoint, m))
		}
	}
	return all
}

func (s *site) spare(endpoint string, m *capacity.Machine) Machine {
	tones := map[capacity.State]Tone{
		capacity.Fit: Spare, capacity.Quarantined: Bad, capacity.Broken: Bad,
	}
	return Machine{
		ID: terminal.Line(endpoint + "/" + m.SystemID), Name: terminal.Line(m.Hostname), Zone: terminal.Line(m.Zone),
		Pool: terminal.Line(m.Pool), State: terminal.Line(string(m.State) + " (" + m.Status + ")"),
		Tone: cmp.Or(tones[m.State], Neutral), Quarantined: m.State == capacity.Quarantined,
		SystemID: terminal.Line(m.SystemID), Owner: terminal.Line(m.TakenBy), Tags: lines(m.Tags),
		Link: s.link(endpoint, m.SystemID),
	}
}

// unread returns the quarantined machines of a cluster whose MAAS the user cannot read.
func (s *site) unread(cluster string) []Machine {
	var all []Machine
	for id := range s.quarantined[cluster] {
		inUse := slices.ContainsFunc(s.machines, func(m look.Machine) bool {
			return m.Hardware != nil && m.Hardware.ID == id && m.HostedCluster.String() == cluster
		})
		if !inUse {
			all = append(all, Machine{
				ID: terminal.Line(cluster + "/quarantined/" + id), Name: terminal.Line(id), SystemID: terminal.Line(id),
				State: "quarantined", Tone: Bad, Quarantined: true, Tags: []string{},
			})
		}
	}
	return all
}

func (s *site) finding(f *health.Finding) *Finding {
	if f == nil {
		return nil
	}
	found := &Finding{Text: terminal.Line(look.Text(f, s.now)), Tone: Bad}
	if f.Progress {
		found.Tone = Attention
	}
	return found
}

// tone returns the colour of a state with a finding.
func tone(state look.State, f *health.Finding) Tone {
	style := state.Style()
	switch {
	case f != nil && !f.Progress, style == terminal.Bad:
		return Bad
	case f != nil, style == terminal.Attention:
		return Attention
	}
	return Good
}

func lines(texts []string) []string {
	cleaned := make([]string, len(texts))
	for i, text := range texts {
		cleaned[i] = terminal.Line(text)
	}
	return cleaned
}
