// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Peer benchmark: N bulk TCP CUBIC flows over one drop-tail bottleneck in ns-3.
//
//   host 0 --+                         +-- host 0'
//   host 1 --+-- left ==RATE== right --+-- host 1'
//   ...      |                         |   ...
//
// --access says how many of the fast links a path has: 2 as drawn; 1, the sinks
// sit on "right"; 0, the sources sit on "left" as well. Every hop costs CPU time
// and changes goodput by less than 0.1 % over 30 s, so 0 is the reading kindest
// to ns-3.
//
// Prints one line of JSON. cpu_s is the user + system CPU time of
// Simulator::Run alone; building the topology is outside of it.
//
// The distribution's library has logging compiled in (switched off, but each
// log statement still tests a flag). A build of ns-3 without logging is up to
// 1.6 times faster, so whoever prints a ratio against cpu_s should print it
// divided by 1.6 as well.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#ifndef NS3_VERSION_TEXT
#define NS3_VERSION_TEXT "unknown"
#endif

using namespace ns3;

namespace
{

constexpr uint32_t kMss = 1448;            // + 12 timestamp option + 40 headers = 1500
constexpr uint32_t kIpPacket = 1500;
constexpr uint32_t kSocketBuffer = 64u << 20;
constexpr uint32_t kPort = 5001;             // of the first flow
constexpr uint32_t kMaxFlows = 16384;      // /30 networks in a /16
constexpr double kAccessSpeedup = 20.0;    // access rate / bottleneck rate
constexpr double kAccessDelayShare = 0.05; // of the one-way delay, each side

double CpuSeconds()
{
    rusage u{};
    getrusage(RUSAGE_SELF, &u);
    auto s = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
    return s(u.ru_utime) + s(u.ru_stime);
}

// One transfer: an endless source, and a sink which counts and discards.
class Flow
{
  public:
    void Listen(Ptr<Node> node, uint16_t port)
    {
        m_listener = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Flow::Accepted, this));
    }

    void Start(Ptr<Node> node, InetSocketAddress peer, uint32_t ahead)
    {
        m_ahead = ahead;
        m_source = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        m_source->Bind();
        m_source->SetConnectCallback(MakeCallback(&Flow::Connected, this),
                                     MakeCallback(&Flow::Failed, this));
        m_source->SetSendCallback(MakeCallback(&Flow::Room, this));
        m_source->TraceConnectWithoutContext("Tx", MakeCallback(&Flow::Sent, this));
        m_source->Connect(peer);
    }

    uint64_t Delivered() const { return m_delivered; }
    uint64_t Retransmissions() const { return m_retransmissions; }

  private:
    void Accepted(Ptr<Socket> s, const Address&)
    {
        m_sink = s;
        s->SetRecvCallback(MakeCallback(&Flow::Arrived, this));
    }

    void Arrived(Ptr<Socket> s)
    {
        while (Ptr<Packet> p = s->Recv())
        {
            if (p->GetSize() == 0)
            {
                break;
            }
            m_delivered += p->GetSize();
        }
    }

    void Connected(Ptr<Socket> s)
    {
        m_open = true;
        Fill(s, s->GetTxAvailable());
    }

    void Failed(Ptr<Socket>) { NS_FATAL_ERROR("a flow could not connect"); }

    void Room(Ptr<Socket> s, uint32_t available)
    {
        if (m_open)
        {
            Fill(s, available);
        }
    }

    // Writes of exactly one segment spare ns-3 from splitting and joining packets.
    // The send buffer holds at most m_ahead bytes: several times what the path can
    // hold, so the congestion window decides, yet no time goes into writing data
    // which would never be sent.
    void Fill(Ptr<Socket> s, uint32_t available)
    {
        const uint32_t spare = kSocketBuffer - m_ahead;
        for (; available >= spare + kMss; available -= kMss)
        {
            if (s->Send(Create<Packet>(kMss)) < 0)
            {
                break;
            }
        }
    }

    void Sent(Ptr<const Packet> p, const TcpHeader& h, Ptr<const TcpSocketBase>)
    {
        const uint32_t size = p->GetSize();
        if (size == 0)
        {
            return;
        }
        const SequenceNumber32 seq = h.GetSequenceNumber();
        if (m_any && seq < m_highest)
        {
            ++m_retransmissions;
            return;
        }
        m_any = true;
        m_highest = seq + size;
    }

    Ptr<Socket> m_listener, m_source, m_sink;
    SequenceNumber32 m_highest;
    uint64_t m_delivered = 0;
    uint64_t m_retransmissions = 0;
    uint32_t m_ahead = 0;
    bool m_open = false;
    bool m_any = false;
};

void SetTcpDefaults()
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TcpPrrRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kMss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kSocketBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kSocketBuffer));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
}

NetDeviceContainer Link(Ptr<Node> a, Ptr<Node> b, double bps, Time delay, uint32_t packets)
{
    PointToPointHelper h;
    h.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(std::llround(bps)))));
    h.SetDeviceAttribute("Mtu", UintegerValue(kIpPacket));
    h.SetChannelAttribute("Delay", TimeValue(delay));
    h.SetQueue("ns3::DropTailQueue<Packet>",
               "MaxSize",
               QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
    // Without flow control the stack gives the device no default queue
    // discipline, so the device's own queue is the only buffer.
    h.DisableFlowControl();
    return h.Install(a, b);
}

void RequireNoQueueDisc(Ptr<Node> node)
{
    Ptr<TrafficControlLayer> tc = node->GetObject<TrafficControlLayer>();
    for (uint32_t i = 0; tc && i < node->GetNDevices(); ++i)
    {
        NS_ABORT_MSG_IF(tc->GetRootQueueDiscOnDevice(node->GetDevice(i)),
                        "a device has a queue discipline on top of its queue");
    }
}

} // namespace

int main(int argc, char* argv[])
{
    uint32_t flows = 1;
    double rateMbps = 230;
    double rttMs = 30;
    double seconds = 30;
    uint32_t seed = 1;
    uint32_t access = 2;

    CommandLine cmd;
    cmd.AddValue("flows", "number of TCP flows", flows);
    cmd.AddValue("rate_mbps", "bottleneck rate, Mb/s", rateMbps);
    cmd.AddValue("rtt_ms", "round-trip propagation delay, ms", rttMs);
    cmd.AddValue("seconds", "simulated seconds", seconds);
    cmd.AddValue("seed", "random seed (start times), 1 or more", seed);
    cmd.AddValue("access", "fast links on each path besides the bottleneck: 0, 1 or 2", access);
    cmd.Parse(argc, argv);

    if (flows < 1 || flows > kMaxFlows || !(rateMbps > 0) || !(rttMs > 0) || !(seconds > 0) ||
        seed < 1 || access > 2)
    {
        std::fprintf(stderr, "ns3_bulk: an option is out of range\n");
        return 2;
    }

    RngSeedManager::SetSeed(seed);
    SetTcpDefaults();

    const double bps = rateMbps * 1e6;
    const uint32_t bdp =
        std::max(2u, uint32_t(std::llround(bps * rttMs * 1e-3 / (8.0 * kIpPacket))));
    const double oneWayMs = rttMs / 2;
    const Time accessDelay = NanoSeconds(std::llround(oneWayMs * kAccessDelayShare * 1e6));
    const Time coreDelay =
        NanoSeconds(std::llround(oneWayMs * 1e6) - int64_t(access) * accessDelay.GetNanoSeconds());
    // A sender's window never exceeds its buffer, so this access queue cannot overflow.
    const uint32_t accessQueue = kSocketBuffer / kMss + 1000;

    // Path and queue hold two BDPs; slow start may overshoot to twice that.
    const uint32_t ahead =
        uint32_t(std::min<uint64_t>(kSocketBuffer, 8ull * bdp * kIpPacket + (1u << 20)));

    NodeContainer routers, sources, sinks;
    routers.Create(2);
    sources.Create(access >= 1 ? flows : 0);
    sinks.Create(access >= 2 ? flows : 0);
    Ptr<Node> left = routers.Get(0);
    Ptr<Node> right = routers.Get(1);

    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(routers);
    stack.Install(sources);
    stack.Install(sinks);

    // Sources live in 10.1/16, sinks in 10.2/16: one static route per router.
    const char* mask = "255.255.255.252";
    Ipv4AddressHelper coreNet("10.0.0.0", mask);
    Ipv4AddressHelper sourceNet("10.1.0.0", mask);
    Ipv4AddressHelper sinkNet("10.2.0.0", mask);
    Ipv4StaticRoutingHelper routing;
    auto routes = [&](Ptr<Node> n) { return routing.GetStaticRouting(n->GetObject<Ipv4>()); };

    NetDeviceContainer core = Link(left, right, bps, coreDelay, bdp);
    Ipv4InterfaceContainer coreIf = coreNet.Assign(core);
    routes(left)->AddNetworkRouteTo("10.2.0.0", "255.255.0.0", coreIf.GetAddress(1), 1);
    routes(right)->AddNetworkRouteTo("10.1.0.0", "255.255.0.0", coreIf.GetAddress(0), 1);

    std::vector<Flow> all(flows);
    Ptr<UniformRandomVariable> startMs = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < flows; ++i)
    {
        const double accessBps = bps * kAccessSpeedup;
        Ptr<Node> from = left;
        Ptr<Node> to = right;
        Ipv4Address toAddress = coreIf.GetAddress(1);
        if (access >= 1)
        {
            from = sources.Get(i);
            Ipv4InterfaceContainer a =
                sourceNet.Assign(Link(from, left, accessBps, accessDelay, accessQueue));
            sourceNet.NewNetwork();
            routes(from)->SetDefaultRoute(a.GetAddress(1), 1);
        }
        if (access >= 2)
        {
            to = sinks.Get(i);
            Ipv4InterfaceContainer b =
                sinkNet.Assign(Link(right, to, accessBps, accessDelay, accessQueue));
            sinkNet.NewNetwork();
            routes(to)->SetDefaultRoute(b.GetAddress(0), 1);
            toAddress = b.GetAddress(1);
        }

        Flow* f = &all[i];
        const uint16_t port = uint16_t(kPort + i);
        f->Listen(to, port);
        const InetSocketAddress peer(toAddress, port);
        const Time at = NanoSeconds(std::llround(startMs->GetValue(0, rttMs) * 1e6));
        Simulator::ScheduleWithContext(from->GetId(), at, [f, from, peer, ahead] {
            f->Start(from, peer, ahead);
        });
    }
    for (uint32_t i = 0; i < NodeList::GetNNodes(); ++i)
    {
        RequireNoQueueDisc(NodeList::GetNode(i));
    }

    Simulator::Stop(NanoSeconds(std::llround(seconds * 1e9)));
    const double before = CpuSeconds();
    Simulator::Run();
    const double cpu = CpuSeconds() - before;

    uint64_t bytes = 0;
    uint64_t retransmissions = 0;
    for (const Flow& f : all)
    {
        bytes += f.Delivered();
        retransmissions += f.Retransmissions();
    }
    const uint64_t drops =
        DynamicCast<PointToPointNetDevice>(core.Get(0))->GetQueue()->GetTotalDroppedPackets();
    std::printf("{\"tool\":\"ns-" NS3_VERSION_TEXT "\",\"flows\":%" PRIu32
                ",\"rate_mbps\":%g,\"rtt_ms\":%g,\"simulated_s\":%g,\"seed\":%" PRIu32
                ",\"access_links\":%" PRIu32
                ",\"cpu_s\":%.3f,\"delivered_segments\":%" PRIu64
                ",\"goodput_mbps\":%.3f,\"retransmissions\":%" PRIu64
                ",\"queue_packets\":%" PRIu32 ",\"queue_drops\":%" PRIu64
                ",\"events\":%" PRIu64 "}\n",
                flows,
                rateMbps,
                rttMs,
                seconds,
                seed,
                access,
                cpu,
                bytes / kMss,
                double(bytes) * 8e-6 / seconds,
                retransmissions,
                bdp,
                drops,
                Simulator::GetEventCount());
    Simulator::Destroy();
    return 0;
}
