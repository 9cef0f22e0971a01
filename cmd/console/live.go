// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/capacity"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/terminal"
)

const (
	// publishInterval is the shortest time between two pictures.
	publishInterval = 250 * time.Millisecond
	// ageInterval is the longest time between two pictures: ages change without events.
	ageInterval = 30 * time.Second
	// siteInterval is the time between two reads of MAAS, and siteTimeout the longest read.
	siteInterval = time.Minute
	siteTimeout  = 30 * time.Second
	// maxNote is the longest note, in bytes.
	maxNote = 400
)

// Live holds the current Picture of a management cluster.
type Live struct {
	client    client.WithWatch
	part      Part
	hardware  []look.HardwareReader
	namespace string
	store     *store
	dirty     chan struct{}

	mu      sync.Mutex
	current []byte
	next    chan struct{}
	reports map[string]*capacity.Report
	// unread says by cluster why its site is not shown.
	unread map[string]string
}

// NewLive returns a Live for the clusters of a namespace; of all namespaces if it is empty.
func NewLive(c client.WithWatch, part Part, hardware []look.HardwareReader, namespace string) *Live {
	l := &Live{
		client: c, part: part, hardware: hardware, namespace: namespace, dirty: make(chan struct{}, 1),
		next: make(chan struct{}), reports: map[string]*capacity.Report{}, unread: map[string]string{},
		current: []byte(`{"loading":true,"notes":[],"clusters":[],"machines":[],"capacity":[]}`),
	}
	l.store = newStore(c, l.mark)
	return l
}

// mark requests a new picture.
func (l *Live) mark() {
	select {
	case l.dirty <- struct{}{}:
	default:
	}
}

// Current returns the current Picture as JSON, and a channel that is closed when there is another.
func (l *Live) Current() ([]byte, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current, l.next
}

// Run follows the management cluster and its sites until the context ends.
func (l *Live) Run(ctx context.Context) {
	l.store.follow(ctx, &hyperv1.HostedClusterList{}, l.namespace)
	l.store.follow(ctx, &hyperv1.NodePoolList{}, l.namespace)
	var running sync.WaitGroup
	running.Go(func() { l.readSites(ctx) })
	ages := time.NewTicker(ageInterval)
	defer ages.Stop()
	for ctx.Err() == nil {
		l.publish(ctx)
		pause := time.NewTimer(publishInterval)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
		select {
		case <-ctx.Done():
		case <-l.dirty:
		case <-ages.C:
		}
	}
	running.Wait()
}

func (l *Live) publish(ctx context.Context) {
	picture, err := json.Marshal(l.picture(ctx))
	if err != nil {
		picture = []byte(`{"notes":["The console cannot show its data; report this as a defect."]}`)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Equal(picture, l.current) {
		return
	}
	l.current = picture
	close(l.next)
	l.next = make(chan struct{})
}

func (l *Live) picture(ctx context.Context) *Picture {
	var notes []string
	note := func(err error) {
		if err != nil {
			notes = append(notes, condition.Shorten(terminal.Line(err.Error()), maxNote))
		}
	}
	reader := look.New(l.store, l.hardware)
	s := &site{now: clock.RealClock{}.Now(), link: l.part.Link, quarantined: map[string]map[string]bool{}}
	var err error
	s.clusters, err = reader.HostedClusters(ctx, l.namespace)
	note(err)
	s.pools, err = reader.NodePools(ctx, l.namespace, "")
	note(err)
	l.followHosted(ctx, s.clusters)
	s.machines, err = reader.Machines(ctx, s.clusters)
	note(err)
	for i := range s.clusters {
		hc := &s.clusters[i]
		key := client.ObjectKeyFromObject(hc).String()
		s.quarantined[key], err = l.part.Quarantined(ctx, l.store, hc)
		note(err)
	}
	l.mu.Lock()
	s.reports = l.reports
	for i := range s.clusters {
		if why := l.unread[client.ObjectKeyFromObject(&s.clusters[i]).String()]; why != "" {
			notes = append(notes, why)
		}
	}
	l.mu.Unlock()
	if denied := reader.Denied(); denied != "" {
		notes = append(notes, terminal.Line(denied))
	}
	p := s.picture()
	p.Notes = append(p.Notes, notes...)
	p.Loading = !l.store.synced()
	return p
}

// followHosted watches the machines of clusters: in all namespaces if the user may do so, otherwise in each hosted
// namespace.
func (l *Live) followHosted(ctx context.Context, clusters []hyperv1.HostedCluster) {
	for _, list := range append([]client.ObjectList{&clusterv1.MachineList{}}, l.part.Kinds()...) {
		if l.namespace == "" {
			l.store.follow(ctx, list, "")
			if !l.store.denied(list, "") {
				continue
			}
		}
		for i := range clusters {
			l.store.follow(ctx, list, kube.HostedNamespace(clusters[i].Namespace, clusters[i].Name))
		}
	}
}

// readSites reads the sites of all clusters, one after the other, until the context ends.
func (l *Live) readSites(ctx context.Context) {
	for ctx.Err() == nil {
		pause := siteInterval
		if !l.store.synced() {
			pause = publishInterval
		} else {
			l.readAll(ctx)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (l *Live) readAll(ctx context.Context) {
	reader := look.New(l.store, nil)
	clusters, err := reader.HostedClusters(ctx, l.namespace)
	if err != nil {
		return // The picture has the same error.
	}
	reports, unread := map[string]*capacity.Report{}, map[string]string{}
	for i := range clusters {
		hc := &clusters[i]
		if hc.Spec.Platform.Type != l.part.Type() {
			continue
		}
		key := client.ObjectKeyFromObject(hc).String()
		report, err := l.read(ctx, reader, hc, clusters)
		if err != nil {
			unread[key] = condition.Shorten(terminal.Line(fmt.Sprintf("Machines that no cluster has, and capacity, are "+
				"not shown for cluster %s: %v", key, err)), maxNote)
			continue
		}
		reports[key] = report
	}
	l.mu.Lock()
	l.reports, l.unread = reports, unread
	l.mu.Unlock()
	l.mark()
}

// read reads the site of a cluster.
func (l *Live) read(
	ctx context.Context, reader *look.Reader, hc *hyperv1.HostedCluster, clusters []hyperv1.HostedCluster,
) (*capacity.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, siteTimeout)
	defer cancel()
	pools, err := reader.NodePools(ctx, hc.Namespace, hc.Name)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for i := range clusters {
		key := client.ObjectKeyFromObject(&clusters[i])
		names[kube.HostedNamespace(key.Namespace, key.Name)] = key.String()
	}
	return l.part.Report(ctx, l.client, hc, pools, names)
}
