// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Peer benchmark: bulk TCP CUBIC downlink over one LTE cell of ns-3.
//
//   server --(core delay)-- PGW -- SGW -- eNB ))) UE 0, UE 1, ...
//
// 20 MHz FDD, one antenna, HARQ, the given RLC mode; UEs stand beside the eNB and
// have the highest MCS. The first --active UEs download, each for itself; the others
// are attached and idle.
//
// Prints one line of JSON. cpu_s is the user + system CPU time of
// Simulator::Run alone; building the topology is outside of it.

#include "ns3_flow.h"

#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace
{

constexpr uint32_t kMaxUes = 300;        // of SRS configuration indices there are 320
constexpr uint16_t kPrbs = 100;          // 20 MHz, TS 36.101 table 5.6-1
constexpr uint64_t kCoreBps = 10000000000; // never the bottleneck
constexpr double kAttachedMs = 100;      // flows start when all UEs are attached

// Sounding takes one subframe of the period for each UE (TS 36.213 table 8.2-1).
uint32_t SrsPeriod(uint32_t ues)
{
    for (uint32_t period : {40u, 80u, 160u})
    {
        if (ues <= period)
        {
            return period;
        }
    }
    return 320;
}

void SetLteDefaults(const std::string& rlc, uint32_t buffer, uint32_t ues)
{
    const auto mode = rlc == "am" ? LteEnbRrc::RLC_AM_ALWAYS : LteEnbRrc::RLC_UM_ALWAYS;
    Config::SetDefault("ns3::LteEnbRrc::EpsBearerToRlcMapping", EnumValue(mode));
    Config::SetDefault("ns3::LteEnbRrc::SrsPeriodicity", UintegerValue(SrsPeriod(ues)));
    Config::SetDefault("ns3::LteRlcAm::MaxTxBufferSize", UintegerValue(buffer));
    Config::SetDefault("ns3::LteRlcUm::MaxTxBufferSize", UintegerValue(buffer));
}

// The server, joined to the PGW; it has a route to the UEs.
Ptr<Node> Server(Ptr<PointToPointEpcHelper> epc, Time delay)
{
    Ptr<Node> server = CreateObject<Node>();
    InternetStackHelper().Install(server);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(kCoreBps)));
    link.SetDeviceAttribute("Mtu", UintegerValue(kIpPacket));
    link.SetChannelAttribute("Delay", TimeValue(delay));
    link.SetQueue("ns3::DropTailQueue<Packet>",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, kSocketBuffer / kMss)));
    link.DisableFlowControl();
    Ipv4AddressHelper net("1.0.0.0", "255.0.0.0");
    net.Assign(link.Install(epc->GetPgwNode(), server));
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(server->GetObject<Ipv4>())
        ->AddNetworkRouteTo("7.0.0.0", "255.0.0.0", 1);
    return server;
}

// The eNB at the origin, 30 m up; UEs in a row beside it.
void Place(NodeContainer enb, NodeContainer ues)
{
    Ptr<ListPositionAllocator> places = CreateObject<ListPositionAllocator>();
    places->Add(Vector(0, 0, 30));
    for (uint32_t i = 0; i < ues.GetN(); ++i)
    {
        places->Add(Vector(10 + 0.1 * i, 0, 1.5));
    }
    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.SetPositionAllocator(places);
    mobility.Install(enb);
    mobility.Install(ues);
}

} // namespace

int main(int argc, char* argv[])
{
    uint32_t ues = 1;
    uint32_t active = 1;
    std::string rlc = "am";
    double delayMs = 5;
    double seconds = 10;
    uint32_t buffer = 500000;
    uint32_t seed = 1;

    CommandLine cmd;
    cmd.AddValue("ues", "number of UEs", ues);
    cmd.AddValue("active", "how many of them download", active);
    cmd.AddValue("rlc", "am or um", rlc);
    cmd.AddValue("delay_ms", "one-way delay from the server to the PGW, ms", delayMs);
    cmd.AddValue("seconds", "simulated seconds", seconds);
    cmd.AddValue("buffer", "RLC's transmission buffer, bytes", buffer);
    cmd.AddValue("seed", "random seed, 1 or more", seed);
    cmd.Parse(argc, argv);

    if (ues < 1 || ues > kMaxUes || active > ues || (rlc != "am" && rlc != "um") ||
        !(delayMs >= 0) || !(seconds > 0) || buffer < kIpPacket || seed < 1)
    {
        std::fprintf(stderr, "ns3_lte: an option is out of range\n");
        return 2;
    }

    RngSeedManager::SetSeed(seed);
    SetTcpDefaults();
    SetLteDefaults(rlc, buffer, ues);

    Ptr<LteHelper> lte = CreateObject<LteHelper>();
    Ptr<PointToPointEpcHelper> epc = CreateObject<PointToPointEpcHelper>();
    lte->SetEpcHelper(epc);
    lte->SetEnbDeviceAttribute("DlBandwidth", UintegerValue(kPrbs));
    lte->SetEnbDeviceAttribute("UlBandwidth", UintegerValue(kPrbs));
    Ptr<Node> server = Server(epc, NanoSeconds(std::llround(delayMs * 1e6)));

    NodeContainer enbs, phones;
    enbs.Create(1);
    phones.Create(ues);
    Place(enbs, phones);
    NetDeviceContainer enbDevices = lte->InstallEnbDevice(enbs);
    NetDeviceContainer ueDevices = lte->InstallUeDevice(phones);
    InternetStackHelper().Install(phones);
    Ipv4InterfaceContainer addresses = epc->AssignUeIpv4Address(ueDevices);
    Ipv4StaticRoutingHelper routing;
    for (uint32_t i = 0; i < ues; ++i)
    {
        routing.GetStaticRouting(phones.Get(i)->GetObject<Ipv4>())
            ->SetDefaultRoute(epc->GetUeDefaultGatewayAddress(), 1);
    }
    lte->Attach(ueDevices, enbDevices.Get(0));

    std::vector<Flow> flows(active);
    Ptr<UniformRandomVariable> later = CreateObject<UniformRandomVariable>();
    // Twice what path and buffer hold, so that the congestion window decides.
    const uint32_t ahead =
        uint32_t(std::min<uint64_t>(kSocketBuffer, 2ull * buffer + (1u << 20)));
    for (uint32_t i = 0; i < active; ++i)
    {
        Flow* flow = &flows[i];
        flow->Listen(phones.Get(i), kPort);
        const InetSocketAddress peer(addresses.GetAddress(i), kPort);
        const Time at = NanoSeconds(std::llround((kAttachedMs + later->GetValue(0, 10)) * 1e6));
        Simulator::ScheduleWithContext(server->GetId(), at, [flow, server, peer, ahead] {
            flow->Start(server, peer, ahead);
        });
    }

    Simulator::Stop(NanoSeconds(std::llround(seconds * 1e9)));
    const double before = CpuSeconds();
    Simulator::Run();
    const double cpu = CpuSeconds() - before;

    uint64_t bytes = 0;
    uint64_t retransmissions = 0;
    for (const Flow& flow : flows)
    {
        bytes += flow.Delivered();
        retransmissions += flow.Retransmissions();
    }
    std::printf("{\"tool\":\"ns-" NS3_VERSION_TEXT "\",\"ues\":%" PRIu32 ",\"active\":%" PRIu32
                ",\"rlc\":\"%s\",\"delay_ms\":%g,\"simulated_s\":%g,\"seed\":%" PRIu32
                ",\"buffer_bytes\":%" PRIu32 ",\"cpu_s\":%.3f,\"delivered_segments\":%" PRIu64
                ",\"goodput_mbps\":%.3f,\"retransmissions\":%" PRIu64 ",\"events\":%" PRIu64
                "}\n",
                ues,
                active,
                rlc.c_str(),
                delayMs,
                seconds,
                seed,
                buffer,
                cpu,
                bytes / kMss,
                double(bytes) * 8e-6 / seconds,
                retransmissions,
                Simulator::GetEventCount());
    Simulator::Destroy();
    return 0;
}
